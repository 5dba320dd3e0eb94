// For the tests of both endpoints: a tool, headers, and messages to send.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "mcp/headers.h"
#include "mcp/tool.h"

namespace prims::mcp::testing {

inline constexpr std::string_view kModernMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}})";

inline std::vector<ToolDefinition> tools() {
  ToolDefinition run;
  run.name = "run_code";
  run.title = "Run Python code";
  run.description = "Runs Python code.";
  run.input_schema = json::parse(R"({"type":"object","properties":{"code":{"type":"string"},
      "workspace":{"type":"string","x-mcp-header":"Workspace"}},"required":["code"],"additionalProperties":false})")
                         ->get_object();
  run.output_schema =
      json::parse(R"({"type":"object","properties":{"status":{"type":"string"}}})")->get_object();
  run.annotations = json::Object{{"destructiveHint", true}};
  run.meta = json::Object{{"example.org/note", "kept"}};
  return {run};
}

class TestHeaders final : public Headers {
 public:
  TestHeaders(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  std::vector<std::string_view> all(std::string_view name) const override {
    std::vector<std::string_view> out;
    for (const auto& [key, value] : fields_) {
      if (key == name) out.emplace_back(value);
    }
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

inline TestHeaders basic() {
  return TestHeaders{{"Host", "localhost:9000"},
                     {"Content-Type", "application/json"},
                     {"Accept", "application/json, text/event-stream"}};
}

inline TestHeaders modern(const std::string& method, const std::string& name = "") {
  TestHeaders headers = basic();
  headers.add("MCP-Protocol-Version", "2026-07-28");
  headers.add("Mcp-Method", method);
  if (!name.empty()) headers.add("Mcp-Name", name);
  return headers;
}

inline std::string request(std::string_view method, std::string_view params, std::string_view id = "1") {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"{}","params":{{{}}}}})", id, method, params);
}

inline std::string modern_request(std::string_view method, std::string_view params = "") {
  return request(method,
                 params.empty() ? std::string(kModernMeta) : fmt::format("{},{}", params, kModernMeta));
}

inline json::Object object(std::string_view text) {
  return json::parse(text).value().get_object();
}

inline std::int64_t code_of(std::string_view text) {
  const json::Object message = object(text);
  const json::Object* error = json::object_field(message, "error");
  return error == nullptr ? 0 : json::integer_field(*error, "code").value_or(0);
}

}  // namespace prims::mcp::testing

#include <fmt/format.h>

#include "mcp/writer.h"
#include "mcp/writer_parts.h"

namespace prims::mcp {
namespace {

constexpr std::string_view kHasTitle = "2025-06-18";

class LegacyWriter final : public Writer {
 public:
  LegacyWriter(std::string version, ServerInfo info, std::span<const ToolDefinition> tools)
      : Writer(std::move(version), std::move(info)),
        tools_(fmt::format(R"("tools":{})", parts::tool_array(tools, this->version()))) {}

  std::string greeting(const RequestId& id) const override {
    json::Object server = implementation(info().version);
    if (version() < kHasTitle) server.erase("title");
    json::Object capabilities{{"tools", json::Object()}};
    std::string members = fmt::format(R"("protocolVersion":"{}","capabilities":{},"serverInfo":{})",
                                      version(), json::write(capabilities), json::write(server));
    if (!info().instructions.empty()) {
      members += fmt::format(R"(,"instructions":{})", json::write(json::Value(info().instructions)));
    }
    return stamped(id, members);
  }

  std::string tool_list(const RequestId& id) const override { return stamped(id, tools_); }

  std::string tool_result(const RequestId& id, const ToolResult& result) const override {
    return stamped(id, parts::tool_result_members(result, version()));
  }

  std::string empty(const RequestId& id) const override { return stamped(id, ""); }

 private:
  static std::string stamped(const RequestId& id, std::string_view members) {
    return parts::response(id, fmt::format("{{{}}}", members));
  }

  std::string tools_;
};

}  // namespace

std::unique_ptr<Writer> make_legacy_writer(std::string version, ServerInfo info,
                                           std::span<const ToolDefinition> tools) {
  return std::make_unique<LegacyWriter>(std::move(version), std::move(info), tools);
}

}  // namespace prims::mcp

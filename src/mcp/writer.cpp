#include "mcp/writer.h"

#include <fmt/format.h>

#include "mcp/writer_parts.h"

namespace prims::mcp {
namespace {

constexpr std::string_view kHasAnnotations = "2025-03-26";  // also progress messages and audio
constexpr std::string_view kHasStructure = "2025-06-18";    // also title, _meta and resource links

json::Object listed(const ToolDefinition& tool, std::string_view version) {
  json::Object out;
  out["name"] = tool.name;
  if (version >= kHasStructure && !tool.title.empty()) out["title"] = tool.title;
  out["description"] = tool.description;
  out["inputSchema"] = tool.input_schema;
  if (version >= kHasStructure && !tool.output_schema.empty()) out["outputSchema"] = tool.output_schema;
  if (version >= kHasAnnotations && !tool.annotations.empty()) out["annotations"] = tool.annotations;
  if (version >= kHasStructure && !tool.meta.empty()) out["_meta"] = tool.meta;
  return out;
}

/// A content block that the version does not know becomes text that names it.
json::Object known_block(const json::Object& block, std::string_view version) {
  const std::string type = json::string_field(block, "type").value_or("");
  const bool known = (type != "resource_link" || version >= kHasStructure) &&
                     (type != "audio" || version >= kHasAnnotations);
  if (known) return block;
  const std::string name = json::string_field(block, "name").value_or(type);
  const std::string uri = json::string_field(block, "uri").value_or("");
  return json::Object{{"type", "text"}, {"text", uri.empty() ? name : fmt::format("{}: {}", name, uri)}};
}

}  // namespace

std::string Writer::progress(const ProgressToken& token, const ProgressUpdate& update) const {
  json::Object params{{"progressToken", token.value()}, {"progress", update.progress}};
  if (!update.message.empty() && version_ >= kHasAnnotations) params["message"] = update.message;
  return json::write(
      json::Object{{"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", std::move(params)}});
}

std::string write_error(const std::optional<RequestId>& id, const RpcError& error) {
  json::Object inner{{"code", static_cast<int>(error.code)}, {"message", error.message}};
  if (error.data) inner["data"] = *error.data;
  json::Object out{{"jsonrpc", "2.0"}};
  if (id) out["id"] = id->value();
  out["error"] = std::move(inner);
  return json::write(out);
}

json::Object implementation(std::string_view version) {
  return json::Object{
      {"name", "prims"}, {"title", "PRIMS - Python Runtime Interpreter MCP Server"}, {"version", version}};
}

namespace parts {

std::string response(const RequestId& id, std::string_view result) {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{}}})", id.text(), result);
}

std::string tool_result_members(const ToolResult& result, std::string_view version) {
  std::string content;
  std::string structured;
  if (!result.structured.empty()) {
    structured = json::write(result.structured);
    content = fmt::format(R"({{"type":"text","text":{}}})", json::write(json::Value(structured)));
  }
  for (const json::Object& block : result.extra_content) {
    if (!content.empty()) content += ',';
    content += json::write(known_block(block, version));
  }
  std::string members = fmt::format(R"("content":[{}])", content);
  if (!structured.empty() && version >= kHasStructure)
    members += fmt::format(R"(,"structuredContent":{})", structured);
  members += result.is_error ? R"(,"isError":true)" : R"(,"isError":false)";
  return members;
}

std::string tool_array(std::span<const ToolDefinition> tools, std::string_view version) {
  json::Array array;
  for (const ToolDefinition& tool : tools) array.emplace_back(listed(tool, version));
  return json::write(array);
}

}  // namespace parts
}  // namespace prims::mcp

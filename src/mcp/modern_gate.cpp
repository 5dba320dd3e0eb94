#include "mcp/modern_gate.h"

#include <fmt/format.h>

#include "mcp/header_value.h"

namespace prims::mcp {
namespace {

Refusal mismatch(std::string message) {
  return refuse(RpcCode::header_mismatch, std::move(message));
}

/// The decoded value of a header; nullopt: not sent.
std::expected<std::optional<std::string>, Refusal> decoded(const Headers& headers, std::string_view name) {
  const auto given = single(headers, name);
  if (!given) return std::unexpected(given.error());
  if (!*given) return std::nullopt;
  auto value = decode_header_value(**given);
  if (!value) return std::unexpected(mismatch(fmt::format("the header {} is not readable", name)));
  return value;
}

std::optional<Refusal> check_equal(const Headers& headers, std::string_view name,
                                   const std::optional<std::string>& wanted) {
  const auto given = decoded(headers, name);
  if (!given) return given.error();
  if (*given == wanted) return std::nullopt;
  if (!*given) return mismatch(fmt::format("the header {} is missing", name));
  if (!wanted) return mismatch(fmt::format("the header {} has no counterpart in the body", name));
  return mismatch(fmt::format("the header {} and the body disagree", name));
}

std::optional<std::string_view> name_member(std::string_view method) {
  if (method == "tools/call" || method == "prompts/get") return "name";
  if (method == "resources/read") return "uri";
  return std::nullopt;
}

}  // namespace

std::expected<std::optional<std::string_view>, Refusal> single(const Headers& headers,
                                                               std::string_view name) {
  const auto values = headers.all(name);
  if (values.empty()) return std::nullopt;
  if (values.size() == 1) return values.front();
  return std::unexpected(mismatch(fmt::format("the header {} occurs {} times", name, values.size())));
}

std::optional<Refusal> check_version_header(const Headers& headers, const Message& message) {
  const auto given = single(headers, "MCP-Protocol-Version");
  if (!given) return given.error();
  if (!*given) return mismatch("the header MCP-Protocol-Version is missing");
  const json::Object* meta = json::object_field(message.params, "_meta");
  const json::Value* claim = meta == nullptr ? nullptr : json::find(*meta, kMetaVersion);
  // A claim that is missing or no string is the next check's business.
  if (claim == nullptr || !claim->is_string()) return std::nullopt;
  if (claim->get_string() == **given) return std::nullopt;
  return mismatch("the header MCP-Protocol-Version and _meta name different versions");
}

std::optional<Refusal> check_method_headers(const Headers& headers, const Message& message) {
  if (auto refusal = check_equal(headers, "Mcp-Method", message.method)) return refusal;
  const auto member = name_member(message.method);
  if (!member) return std::nullopt;
  const auto name = json::string_field(message.params, *member);
  // Without a name in the body the parameters are wrong, which is said as such and not as a header fault.
  if (!name) return std::nullopt;
  return check_equal(headers, "Mcp-Name", name);
}

std::optional<Refusal> check_parameter_headers(const Headers& headers, const json::Object& input_schema,
                                               const json::Object& arguments) {
  for (const MirroredParameter& parameter : mirrored_parameters(input_schema)) {
    const auto wanted = mirrored_value(arguments, parameter.path);
    if (auto refusal = check_equal(headers, fmt::format("Mcp-Param-{}", parameter.header), wanted))
      return refusal;
  }
  return std::nullopt;
}

}  // namespace prims::mcp

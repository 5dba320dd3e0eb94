#include "mcp/client_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/writer.h"

namespace prims::mcp {
namespace {

Kind kind_of(std::int64_t code) {
  switch (code) {
    case static_cast<int>(RpcCode::invalid_params):
    case static_cast<int>(RpcCode::invalid_request):
    case static_cast<int>(RpcCode::header_mismatch):
      return Kind::invalid_input;
    case static_cast<int>(RpcCode::method_not_found):
      return Kind::not_found;
    default:
      return Kind::unavailable;
  }
}

bool lists(const json::Array& versions, std::string_view version) {
  return std::ranges::any_of(
      versions, [version](const json::Value& v) { return v.is_string() && v.get_string() == version; });
}

ProbeVerdict judge_versions(const json::Array& versions) {
  if (lists(versions, kModernVersion)) return ProbeVerdict::modern;
  const bool legacy =
      std::ranges::any_of(kVersions, [&](std::string_view version) { return lists(versions, version); });
  return legacy ? ProbeVerdict::legacy : ProbeVerdict::incompatible;
}

void describe(const json::Object* server, ServerDescription& out) {
  if (server == nullptr) return;
  out.name = json::string_field(*server, "name").value_or("");
  out.version = json::string_field(*server, "version").value_or("");
}

}  // namespace

json::Object ClientCore::meta(bool with_progress_token) const {
  json::Object meta;
  if (with_progress_token) meta["progressToken"] = last_id_;
  if (dialect_.era == Era::modern) {
    meta[kMetaVersion] = dialect_.version;
    meta[kMetaClientInfo] = implementation(program_version_);
    meta[kMetaCapabilities] = json::Object();
  }
  return meta;
}

Outgoing ClientCore::request(std::string method, json::Object params) {
  Outgoing out;
  out.id = RequestId(++last_id_);
  json::Object own = meta(method == "tools/call");
  if (!own.empty()) params["_meta"] = std::move(own);
  json::Object message{{"jsonrpc", "2.0"}, {"id", last_id_}, {"method", method}};
  if (!params.empty()) message["params"] = std::move(params);
  out.method = std::move(method);
  out.text = json::write(message);
  return out;
}

Outgoing ClientCore::discover() {
  dialect_ = Dialect();
  return request("server/discover", {});
}

Outgoing ClientCore::initialize() {
  dialect_ = Dialect{Era::legacy, std::string(kLatestLegacyVersion)};
  return request("initialize", json::Object{{"protocolVersion", kLatestLegacyVersion},
                                            {"capabilities", json::Object()},
                                            {"clientInfo", implementation(program_version_)}});
}

Outgoing ClientCore::initialized() {
  return Outgoing{std::nullopt, "notifications/initialized", "",
                  R"({"jsonrpc":"2.0","method":"notifications/initialized"})"};
}

Outgoing ClientCore::list_tools(const std::optional<std::string>& cursor) {
  json::Object params;
  if (cursor) params["cursor"] = *cursor;
  return request("tools/list", std::move(params));
}

Outgoing ClientCore::call_tool(const std::string& name, json::Object arguments) {
  Outgoing out = request("tools/call", json::Object{{"name", name}, {"arguments", std::move(arguments)}});
  out.name = name;
  return out;
}

Outgoing ClientCore::cancelled(const RequestId& id) {
  const json::Object message{
      {"jsonrpc", "2.0"},
      {"method", "notifications/cancelled"},
      {"params", json::Object{{"requestId", id.value()}, {"reason", "no longer needed"}}}};
  return Outgoing{std::nullopt, "notifications/cancelled", "", json::write(message)};
}

ProbeVerdict judge_probe(const Message& response) {
  if (const json::Object* result = json::object_field(response.body, "result")) {
    const json::Array* versions = json::array_field(*result, "supportedVersions");
    return versions == nullptr ? ProbeVerdict::legacy : judge_versions(*versions);
  }
  if (error_code_of(response) != static_cast<int>(RpcCode::unsupported_protocol_version))
    return ProbeVerdict::legacy;
  const json::Object* error = json::object_field(response.body, "error");
  const json::Object* data = json::object_field(*error, "data");
  const json::Array* versions = data == nullptr ? nullptr : json::array_field(*data, "supported");
  return versions == nullptr ? ProbeVerdict::incompatible : judge_versions(*versions);
}

std::optional<std::int64_t> error_code_of(const Message& response) {
  const json::Object* error = json::object_field(response.body, "error");
  if (error == nullptr) return std::nullopt;
  return json::integer_field(*error, "code").value_or(0);
}

Result<json::Object> result_of(const Message& response) {
  if (const auto code = error_code_of(response)) {
    const json::Object* error = json::object_field(response.body, "error");
    return fail(kind_of(*code),
                fmt::format("{} (code {})", json::string_field(*error, "message").value_or("error"), *code));
  }
  const json::Object* result = json::object_field(response.body, "result");
  if (result == nullptr) return fail(Kind::unavailable, "the server's answer has no result object");
  const json::Value* type = json::find(*result, "resultType");
  if (type != nullptr && *type != "complete") {
    return fail(Kind::unavailable,
                fmt::format("the server answered with a result of type {}", json::write(*type)));
  }
  return *result;
}

ServerDescription read_discover(const json::Object& result) {
  ServerDescription out;
  const json::Object* meta = json::object_field(result, "_meta");
  if (meta != nullptr) describe(json::object_field(*meta, kMetaServerInfo), out);
  out.instructions = json::string_field(result, "instructions").value_or("");
  return out;
}

Result<ServerDescription> read_initialized(const json::Object& result) {
  ServerDescription out;
  const auto version = json::string_field(result, "protocolVersion");
  if (!version || !is_legacy_version(*version)) {
    return fail(Kind::unavailable,
                fmt::format("the server speaks protocol version {}, which is not spoken here",
                            version.value_or("?")));
  }
  out.dialect = Dialect{Era::legacy, *version};
  describe(json::object_field(result, "serverInfo"), out);
  out.instructions = json::string_field(result, "instructions").value_or("");
  return out;
}

Result<ToolPage> read_tool_page(const json::Object& result) {
  const json::Array* tools = json::array_field(result, "tools");
  if (tools == nullptr) return fail(Kind::unavailable, "the server's tool list is no array");
  ToolPage page;
  for (const json::Value& value : *tools) {
    const json::Object* object = value.if_object();
    const auto name = object == nullptr ? std::nullopt : json::string_field(*object, "name");
    const json::Object* schema = object == nullptr ? nullptr : json::object_field(*object, "inputSchema");
    if (!name || schema == nullptr)
      return fail(Kind::unavailable, "the server lists a tool without a name or an input schema");
    page.tools.push_back({*name, json::string_field(*object, "description").value_or(""), *schema, *object});
  }
  // An empty cursor is a cursor; only its absence ends the list.
  page.next_cursor = json::string_field(result, "nextCursor");
  return page;
}

Result<CallOutcome> read_call_outcome(const json::Object& result) {
  CallOutcome out;
  const json::Value* is_error = json::find(result, "isError");
  out.is_error = is_error != nullptr && is_error->is_bool() && is_error->get_bool();
  if (const json::Array* content = json::array_field(result, "content")) out.content = *content;
  if (const json::Value* structured = json::find(result, "structuredContent")) out.structured = *structured;
  if (!result.contains("content") && !out.structured)
    return fail(Kind::unavailable, "the tool's result has no content");
  return out;
}

std::optional<ReceivedProgress> read_progress(const Message& notification) {
  if (notification.method != "notifications/progress") return std::nullopt;
  const json::Value* given = json::find(notification.params, "progressToken");
  const auto token = given == nullptr ? std::nullopt : RequestId::from(*given);
  if (!token) return std::nullopt;
  const json::Value* progress = json::find(notification.params, "progress");
  const double value = progress != nullptr && progress->is_number() ? progress->to_number<double>() : 0;
  return ReceivedProgress{*token, value, json::string_field(notification.params, "message").value_or("")};
}

std::string answer_server(const Message& request) {
  if (request.method == "ping") {
    return json::write(
        json::Object{{"jsonrpc", "2.0"}, {"id", request.id->value()}, {"result", json::Object()}});
  }
  return write_error(
      request.id, RpcError{RpcCode::method_not_found, "this client offers nothing to servers", std::nullopt});
}

}  // namespace prims::mcp

#include "mcp/server_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "mcp/modern_gate.h"

namespace prims::mcp {
namespace {

constexpr std::array<std::string_view, 3> kModernMethods = {"server/discover", "tools/list", "tools/call"};

/// W3C trace context, version 00: "00-" 32 hex "-" 16 hex "-" 2 hex.
bool is_traceparent(std::string_view text) {
  constexpr std::string_view kShape = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kShape[i] == 'x' ? !hex : text[i] != kShape[i]) return false;
  }
  return true;
}

std::optional<std::string> traceparent_of(const Message& request) {
  const json::Object* meta = json::object_field(request.params, "_meta");
  if (meta == nullptr) return std::nullopt;
  auto text = json::string_field(*meta, "traceparent");
  if (text && !is_traceparent(*text)) return std::nullopt;
  return text;
}

/// We never hand out a cursor, so none is valid.
std::optional<Refusal> check_cursor(const Message& request) {
  const json::Value* cursor = json::find(request.params, "cursor");
  if (cursor == nullptr || cursor->is_null()) return std::nullopt;
  return refuse(RpcCode::invalid_params, "unknown cursor: the list has one page", 200);
}

Refusal unknown_method(std::string_view method, unsigned status) {
  return refuse(RpcCode::method_not_found, fmt::format("unknown method {}", method), status);
}

}  // namespace

Reply refused(const std::optional<RequestId>& id, const Refusal& refusal) {
  return Reply{write_error(id, refusal.error), refusal.status};
}

std::expected<Initialize, Refusal> read_initialize(const Message& request) {
  const auto version = json::string_field(request.params, "protocolVersion");
  if (!version) {
    return std::unexpected(refuse(RpcCode::invalid_params, "initialize needs protocolVersion, a string"));
  }
  Initialize out{std::string(negotiate_legacy(*version)), ""};
  if (const json::Object* client = json::object_field(request.params, "clientInfo")) {
    out.client_name = json::string_field(*client, "name").value_or("");
  }
  return out;
}

ServerCore::ServerCore(ServerInfo info, std::span<const ToolDefinition> tools, InFlight::Limits limits)
    : tools_(tools.begin(), tools.end()), in_flight_(limits) {
  for (const std::string_view version : kVersions) {
    const std::string name(version);
    writers_[name] =
        version == kModernVersion ? make_modern_writer(info, tools_) : make_legacy_writer(name, info, tools_);
  }
}

const Writer& ServerCore::writer(std::string_view version) const {
  return *writers_.find(version)->second;
}

const ToolDefinition* ServerCore::find_tool(std::string_view name) const {
  const auto found = std::ranges::find(tools_, name, &ToolDefinition::name);
  return found == tools_.end() ? nullptr : &*found;
}

Reaction ServerCore::legacy_request(Message request, const LegacyPeer& peer) {
  const Writer& out = writer(peer.version);
  if (request.method == "ping") return Reply{out.empty(*request.id)};
  if (request.method == "tools/list") {
    if (const auto refusal = check_cursor(request)) return refused(request.id, *refusal);
    return Reply{out.tool_list(*request.id)};
  }
  if (request.method != "tools/call") return refused(request.id, unknown_method(request.method, 200));
  CallContext context;
  context.era = Era::legacy;
  context.protocol_version = peer.version;
  context.principal = peer.principal;
  context.client_name = peer.client_name;
  context.legacy_session = peer.scope;
  Reaction reaction = start(std::move(request), std::move(context), out, peer.scope, nullptr);
  // Old clients take a status other than 200 for a broken connection and never read the error.
  if (auto* reply = std::get_if<Reply>(&reaction); reply != nullptr && reply->status == 400)
    reply->status = 200;
  return reaction;
}

std::optional<Refusal> ServerCore::check_modern(const Message& request, const ModernPeer& peer,
                                                ModernMeta& meta) const {
  if (peer.headers != nullptr) {
    if (auto refusal = check_version_header(*peer.headers, request)) return refusal;
  }
  auto read = read_modern_meta(request);
  if (!read) return read.error();
  meta = *std::move(read);
  if (std::ranges::find(kModernMethods, request.method) == kModernMethods.end())
    return unknown_method(request.method, 404);
  if (peer.headers == nullptr) return std::nullopt;
  return check_method_headers(*peer.headers, request);
}

Reaction ServerCore::modern_request(Message request, const ModernPeer& peer) {
  const Writer& out = writer(kModernVersion);
  ModernMeta meta;
  if (const auto refusal = check_modern(request, peer, meta)) return refused(request.id, *refusal);
  if (request.method == "server/discover") return Reply{out.greeting(*request.id)};
  if (request.method == "tools/list") {
    if (const auto refusal = check_cursor(request)) return refused(request.id, *refusal);
    return Reply{out.tool_list(*request.id)};
  }
  CallContext context;
  context.era = Era::modern;
  context.protocol_version = meta.version;
  context.principal = peer.principal;
  context.client_name = std::move(meta.client_name);
  return start(std::move(request), std::move(context), out, peer.scope, peer.headers);
}

Refusal ServerCore::unknown_tool(std::string_view name) const {
  std::vector<std::string> names;
  for (const ToolDefinition& tool : tools_) names.push_back(tool.name);
  const auto near = nearest(name, names);
  const std::string hint = near ? fmt::format("; did you mean {}?", *near) : "; tools/list names them all";
  return refuse(RpcCode::invalid_params, fmt::format("unknown tool {}{}", name.substr(0, 100), hint), 200);
}

std::expected<ToolCall, Refusal> ServerCore::read_call(Message& request, CallContext context) const {
  ToolCall call;
  auto name = json::string_field(request.params, "name");
  if (!name) return std::unexpected(refuse(RpcCode::invalid_params, "tools/call needs name, a string"));
  call.name = *std::move(name);
  json::Value* arguments = request.params.if_contains("arguments");
  if (arguments != nullptr && !arguments->is_null()) {
    if (!arguments->is_object()) {
      return std::unexpected(refuse(RpcCode::invalid_params, "arguments must be an object"));
    }
    call.arguments = std::move(arguments->get_object());
  }
  call.context = std::move(context);
  call.context.traceparent = traceparent_of(request);
  return call;
}

Reaction ServerCore::start(Message request, CallContext context, const Writer& writer,
                           const std::optional<std::string>& scope, const Headers* headers) {
  auto token = read_progress_token(request);
  if (!token) return refused(request.id, token.error());
  context.wants_progress = token->has_value();
  auto call = read_call(request, std::move(context));
  if (!call) return refused(request.id, call.error());
  const ToolDefinition* tool = find_tool(call->name);
  if (tool == nullptr) return refused(request.id, unknown_tool(call->name));
  if (headers != nullptr) {
    const auto refusal = check_parameter_headers(*headers, tool->input_schema, call->arguments);
    if (refusal) return refused(request.id, *refusal);
  }
  auto ticket = scope ? in_flight_.admit(*scope, *request.id) : in_flight_.admit_unnamed();
  if (!ticket) return refused(request.id, ticket.error());
  return StartedCall{*std::move(request.id), *std::move(call), &writer, *std::move(token),
                     *std::move(ticket)};
}

void ServerCore::notification(const Message& notification, const std::string& scope) {
  if (notification.method != "notifications/cancelled") return;
  const json::Value* given = json::find(notification.params, "requestId");
  if (given == nullptr) return;
  if (const auto id = RequestId::from(*given)) in_flight_.cancel(scope, *id);
}

}  // namespace prims::mcp

#include "mcp/http_endpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "mcp/modern_gate.h"

namespace prims::mcp {
namespace {

constexpr std::size_t kLargestBatch = 64;
constexpr std::string_view kMethods = "GET, POST, DELETE, OPTIONS";

HttpReaction plain(Reply reply) {
  return {PlainReply{reply.status, std::move(reply.message)}, {}};
}

HttpReaction refuse_all(const Refusal& refusal) {
  return plain(refused(std::nullopt, refusal));
}

HttpReaction without_body(unsigned status) {
  return {PlainReply{status, ""}, {}};
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

/// The media type before any parameters.
std::string_view media_type(std::string_view value) {
  return trimmed(value.substr(0, value.find(';')));
}

/// What Accept allows. No header, or */*, allows everything.
struct Acceptable {
  bool json = false;
  bool stream = false;
};

Acceptable acceptable(const Headers& headers) {
  Acceptable out;
  const auto values = headers.all("Accept");
  if (values.empty()) return {true, true};
  for (std::string_view rest : values) {
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      const std::string_view type = media_type(rest.substr(0, comma));
      const bool any = type == "*/*";
      out.json |=
          any || equal_ignoring_case(type, "application/json") || equal_ignoring_case(type, "application/*");
      out.stream |=
          any || equal_ignoring_case(type, "text/event-stream") || equal_ignoring_case(type, "text/*");
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
  }
  return out;
}

std::optional<std::string_view> first(const Headers& headers, std::string_view name) {
  const auto values = headers.all(name);
  return values.empty() ? std::nullopt : std::optional(values.front());
}

void add_cors(const HttpRequest& request, HttpReaction& reaction) {
  const auto origin = first(request.headers, "Origin");
  if (!origin) return;
  reaction.headers.push_back({"Access-Control-Allow-Origin", std::string(*origin)});
  reaction.headers.push_back({"Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate"});
  reaction.headers.push_back({"Vary", "Origin"});
}

HttpReaction preflight(const HttpRequest& request) {
  HttpReaction reaction = without_body(204);
  reaction.headers.push_back({"Allow", std::string(kMethods)});
  if (!first(request.headers, "Origin")) return reaction;
  std::string allowed =
      "content-type, accept, authorization, last-event-id, mcp-protocol-version, mcp-session-id, mcp-method, "
      "mcp-name";
  // Header names cannot be given as a pattern together with credentials, so the Mcp-Param-* asked for are
  // repeated.
  for (std::string_view rest : request.headers.all("Access-Control-Request-Headers")) {
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      const std::string_view name = trimmed(rest.substr(0, comma));
      constexpr std::string_view kParameter = "mcp-param-";
      if (name.size() > kParameter.size() &&
          equal_ignoring_case(name.substr(0, kParameter.size()), kParameter)) {
        allowed += fmt::format(", {}", name);
      }
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
  }
  reaction.headers.push_back({"Access-Control-Allow-Methods", std::string(kMethods)});
  reaction.headers.push_back({"Access-Control-Allow-Headers", std::move(allowed)});
  reaction.headers.push_back({"Access-Control-Max-Age", "600"});
  return reaction;
}

HttpReaction method_not_allowed(std::string_view allowed) {
  HttpReaction reaction = without_body(405);
  reaction.headers.push_back({"Allow", std::string(allowed)});
  return reaction;
}

std::string batch_text(const std::vector<std::string>& messages) {
  return fmt::format("[{}]", fmt::join(messages, ","));
}

}  // namespace

HttpEndpoint::HttpEndpoint(ServerCore& core, OriginRules rules, Sessions::Limits limits)
    : core_(core),
      rules_(std::move(rules)),
      sessions_(limits, [&core](const std::string& id) { return core.in_flight().busy(id); }) {
  sessions_.on_end([this](const std::string& id) {
    core_.in_flight().cancel_scope(id);
    if (ended_) ended_(id);
  });
}

void HttpEndpoint::on_session_end(Sessions::Ended ended) {
  ended_ = std::move(ended);
}

bool HttpEndpoint::touch(const std::string& session, const Principal& principal, Clock::time_point now) {
  return sessions_.use(session, principal, now) != nullptr;
}

std::optional<Refusal> HttpEndpoint::check_sender(const HttpRequest& request) const {
  const auto hosts = request.headers.all("Host");
  if (hosts.size() != 1 || !host_allowed(hosts.front(), rules_)) {
    return refuse(RpcCode::invalid_request, "this Host is not served here; see the setting for allowed hosts",
                  403);
  }
  const auto origins = request.headers.all("Origin");
  if (origins.empty()) return std::nullopt;
  if (origins.size() != 1 || !origin_allowed(origins.front(), rules_)) {
    return refuse(RpcCode::invalid_request, "this Origin is not allowed; see the setting for allowed origins",
                  403);
  }
  return std::nullopt;
}

HttpReaction HttpEndpoint::handle(const HttpRequest& request) {
  if (const auto refusal = check_sender(request)) return refuse_all(*refusal);
  HttpReaction reaction = method_not_allowed(kMethods);
  const bool modern = first(request.headers, "MCP-Protocol-Version") == kModernVersion;
  if (request.method == "POST") {
    reaction = post(request);
  } else if (request.method == "OPTIONS") {
    reaction = preflight(request);
  } else if (modern) {
    reaction = method_not_allowed("POST, OPTIONS");
  } else if (request.method == "GET") {
    reaction = open_stream(request);
  } else if (request.method == "DELETE") {
    reaction = end_session(request);
  }
  add_cors(request, reaction);
  return reaction;
}

HttpReaction HttpEndpoint::post(const HttpRequest& request) {
  const auto type = single(request.headers, "Content-Type");
  if (!type || !*type || !equal_ignoring_case(media_type(**type), "application/json")) {
    return refuse_all(refuse(RpcCode::invalid_request, "Content-Type must be application/json", 415));
  }
  const Acceptable accept = acceptable(request.headers);
  if (!accept.json && !accept.stream) {
    return refuse_all(
        refuse(RpcCode::invalid_request, "Accept must allow application/json or text/event-stream", 406));
  }
  const auto accepts = !accept.stream ? RunCalls::Accepts::json
                       : !accept.json ? RunCalls::Accepts::stream
                                      : RunCalls::Accepts::both;
  auto value = read_json(request.body);
  if (!value) return plain(Reply{write_error(std::nullopt, value.error()), 400});
  if (value->is_array()) return post_batch(request, std::move(value->get_array()), accepts);
  auto message = read_message(*std::move(value));
  if (!message) return plain(Reply{write_error(message.error().id, message.error().error), 400});
  const auto version = single(request.headers, "MCP-Protocol-Version");
  if (!version) return plain(refused(message->id, version.error()));
  if (era_of(*message, *version) == Era::modern) return post_modern(request, *std::move(message), accepts);
  return post_legacy(request, *std::move(message), accepts);
}

HttpReaction HttpEndpoint::post_modern(const HttpRequest& request, Message message,
                                       RunCalls::Accepts accepts) {
  if (message.kind == Message::Kind::response) {
    return refuse_all(
        refuse(RpcCode::invalid_request, "this server asks nothing, so no response is expected"));
  }
  if (message.kind == Message::Kind::notification) {
    // Over HTTP a modern call is cancelled by closing its response, so no notification has an effect.
    if (const auto refusal = check_version_header(request.headers, message)) return refuse_all(*refusal);
    return without_body(202);
  }
  const ModernPeer peer{&request.headers, std::nullopt, request.principal};
  Reaction reaction = core_.modern_request(std::move(message), peer);
  if (auto* reply = std::get_if<Reply>(&reaction)) return plain(std::move(*reply));
  RunCalls run;
  run.calls.push_back(std::get<StartedCall>(std::move(reaction)));
  run.accepts = accepts;
  run.era = Era::modern;
  run.version = kModernVersion;
  return {std::move(run), {}};
}

std::expected<LegacyPeer, Refusal> HttpEndpoint::find_peer(const HttpRequest& request) {
  const auto version = single(request.headers, "MCP-Protocol-Version");
  const auto id = single(request.headers, "Mcp-Session-Id");
  if (!id || !version) {
    return std::unexpected(refuse(RpcCode::invalid_request, "a header of the session occurs more than once"));
  }
  // Without the header the version that initialize settled counts: old clients never send one.
  if (*version && !is_legacy_version(**version)) {
    return std::unexpected(
        refuse(RpcCode::invalid_request,
               fmt::format("MCP-Protocol-Version {} is not spoken here", (*version)->substr(0, 40))));
  }
  if (!*id) {
    return std::unexpected(refuse(RpcCode::invalid_request,
                                  "Mcp-Session-Id is missing; initialize first and send the id it gives"));
  }
  const Session* session = sessions_.use(**id, request.principal, request.now);
  if (session == nullptr) {
    return std::unexpected(refuse(RpcCode::session_not_found, "no such session; initialize again", 404));
  }
  return LegacyPeer{session->id, session->version, session->client_name, request.principal};
}

HttpReaction HttpEndpoint::post_legacy(const HttpRequest& request, Message message,
                                       RunCalls::Accepts accepts) {
  if (message.kind == Message::Kind::request && message.method == "initialize")
    return initialize(request, message);
  const auto peer = find_peer(request);
  if (!peer) return plain(refused(message.id, peer.error()));
  if (message.kind != Message::Kind::request) {
    core_.notification(message, peer->scope);
    return without_body(202);
  }
  Reaction reaction = core_.legacy_request(std::move(message), *peer);
  if (auto* reply = std::get_if<Reply>(&reaction)) return plain(std::move(*reply));
  RunCalls run;
  run.calls.push_back(std::get<StartedCall>(std::move(reaction)));
  run.accepts = accepts;
  run.version = peer->version;
  run.session = peer->scope;
  return {std::move(run), {}};
}

HttpReaction HttpEndpoint::post_batch(const HttpRequest& request, json::Array messages,
                                      RunCalls::Accepts accepts) {
  const auto peer = find_peer(request);
  if (!peer) return refuse_all(peer.error());
  if (peer->version != kBatchVersion || messages.empty() || messages.size() > kLargestBatch) {
    return refuse_all(refuse(RpcCode::invalid_request,
                             fmt::format("one message per request; batches (of 1 to {}) exist in {} only",
                                         kLargestBatch, kBatchVersion)));
  }
  RunCalls run;
  run.shape = RunCalls::Shape::batch;
  run.accepts = accepts;
  run.version = peer->version;
  run.session = peer->scope;
  for (json::Value& value : messages) {
    auto message = read_message(std::move(value));
    if (!message) {
      run.ready.push_back(write_error(message.error().id, message.error().error));
    } else if (message->kind != Message::Kind::request) {
      core_.notification(*message, peer->scope);
    } else if (Reaction reaction = core_.legacy_request(*std::move(message), *peer);
               auto* reply = std::get_if<Reply>(&reaction)) {
      run.ready.push_back(std::move(reply->message));
    } else {
      run.calls.push_back(std::get<StartedCall>(std::move(reaction)));
    }
  }
  if (!run.calls.empty()) return {std::move(run), {}};
  if (run.ready.empty()) return without_body(202);
  return plain(Reply{batch_text(run.ready), 200});
}

HttpReaction HttpEndpoint::initialize(const HttpRequest& request, const Message& message) {
  auto wanted = read_initialize(message);
  if (!wanted) return plain(refused(message.id, wanted.error()));
  // An id that the client brings along is ignored: every session has one that we made.
  const Session* session =
      sessions_.open(wanted->version, std::move(wanted->client_name), request.principal, request.now);
  if (session == nullptr) {
    return plain(refused(
        message.id, refuse(RpcCode::internal_error, "too many sessions are busy; try again later", 503)));
  }
  HttpReaction reaction = plain(Reply{core_.writer(session->version).greeting(*message.id), 200});
  reaction.headers.push_back({"Mcp-Session-Id", session->id});
  return reaction;
}

HttpReaction HttpEndpoint::open_stream(const HttpRequest& request) {
  if (!acceptable(request.headers).stream) {
    return refuse_all(refuse(RpcCode::invalid_request, "Accept must allow text/event-stream", 406));
  }
  const auto peer = find_peer(request);
  if (!peer) return refuse_all(peer.error());
  const auto last = first(request.headers, "Last-Event-ID");
  return {OpenStream{peer->scope, last ? std::optional(std::string(*last)) : std::nullopt}, {}};
}

HttpReaction HttpEndpoint::end_session(const HttpRequest& request) {
  const auto peer = find_peer(request);
  if (!peer) return refuse_all(peer.error());
  sessions_.close(peer->scope);
  return without_body(204);
}

}  // namespace prims::mcp

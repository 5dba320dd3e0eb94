// What an HTTP request to the MCP endpoint leads to. Everything that needs a status other than 200 is decided
// here, before the first byte of an answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/deadline.h"
#include "mcp/headers.h"
#include "mcp/origin.h"
#include "mcp/server_core.h"
#include "mcp/sessions.h"

namespace prims::mcp {

/// The path has been matched by whoever calls.
struct HttpRequest {
  std::string_view method;
  const Headers& headers;
  std::string_view body;
  Principal principal;
  Clock::time_point now;
};

/// Answer at once. An empty body is none; otherwise it is JSON.
struct PlainReply {
  unsigned status = 200;
  std::string body;
};

/// Run these and answer with JSON or, where the client accepts one, an event stream.
struct RunCalls {
  enum class Shape { single, batch };
  enum class Accepts { json, stream, both };

  std::vector<StartedCall> calls;
  std::vector<std::string> ready;  ///< responses of a batch that need no run
  Shape shape = Shape::single;
  Accepts accepts = Accepts::both;
  Era era = Era::legacy;
  std::string version;
  std::string session;  ///< legacy; empty in the modern era
};

/// A legacy GET: a stream for what the server has to say by itself, or the rest of an interrupted one.
struct OpenStream {
  std::string session;
  std::optional<std::string> last_event_id;
};

struct HttpHeader {
  std::string name;
  std::string value;
};

struct HttpReaction {
  std::variant<PlainReply, RunCalls, OpenStream> action;
  std::vector<HttpHeader> headers;  ///< for whatever answer follows
};

class HttpEndpoint {
 public:
  /// `core` must outlive the endpoint.
  HttpEndpoint(ServerCore& core, OriginRules rules, Sessions::Limits limits = {});

  HttpReaction handle(const HttpRequest& request);

  /// An open stream keeps its session in use. False: the session has ended.
  bool touch(const std::string& session, const Principal& principal, Clock::time_point now);

  /// Told of each session that ends, after its calls were cancelled.
  void on_session_end(Sessions::Ended ended);

 private:
  std::optional<Refusal> check_sender(const HttpRequest& request) const;
  HttpReaction post(const HttpRequest& request);
  HttpReaction post_batch(const HttpRequest& request, json::Array messages, RunCalls::Accepts accepts);
  HttpReaction post_modern(const HttpRequest& request, Message message, RunCalls::Accepts accepts);
  HttpReaction post_legacy(const HttpRequest& request, Message message, RunCalls::Accepts accepts);
  HttpReaction initialize(const HttpRequest& request, const Message& message);
  HttpReaction open_stream(const HttpRequest& request);
  HttpReaction end_session(const HttpRequest& request);
  std::expected<LegacyPeer, Refusal> find_peer(const HttpRequest& request);

  ServerCore& core_;
  OriginRules rules_;
  Sessions sessions_;
  Sessions::Ended ended_;
};

}  // namespace prims::mcp

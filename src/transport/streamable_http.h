// MCP over HTTP: the endpoint's handler for a http::Server.
//
// A call that ends quickly is one JSON answer; otherwise the answer becomes an event stream, at the first
// progress or after a moment. A modern client that leaves ends its call. A legacy client that leaves does
// not: it may come back for the rest.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "http/server.h"
#include "io/event.h"
#include "io/scope.h"
#include "mcp/http_endpoint.h"
#include "transport/response_stream.h"
#include "transport/tool_host.h"

namespace prims::transport {

struct StreamableHttpOptions {
  mcp::OriginRules origins;
  mcp::Sessions::Limits sessions;
  mcp::InFlight::Limits calls;
  Milliseconds stream_after{75};        ///< how long an answer may stay undecided between JSON and a stream
  Milliseconds sign_of_life{10'000};    ///< between comments on a silent stream
  std::size_t streams_per_session = 8;  ///< opened by GET
};

class StreamableHttp {
 public:
  /// `host` must outlive this object, and this object every handler that runs.
  StreamableHttp(io::Executor executor, ToolHost& host, mcp::ServerInfo info, StreamableHttpOptions options);

  /// "/mcp" and "/mcp/".
  static bool serves(std::string_view path);

  /// For every request whose path it serves; makes all of its answer.
  io::Task<> handle(http::Request request, http::Responder responder, mcp::Principal principal);

  /// Calls that run now, also those whose client has left.
  std::size_t calls() const { return scope_.size(); }

  /// Ends open GET streams, which would otherwise never end by themselves. Calls go on.
  void close_streams();
  /// Cancels every call and waits for their tools to return. Kind::timed_out if some have not.
  io::Task<Result<>> end_calls(Deadline deadline);

 private:
  mcp::HttpReaction react(const http::Request& request, const mcp::Principal& principal);
  io::Task<> answer(mcp::RunCalls run, http::Response head, http::Responder responder);
  io::Task<> answer_plainly(std::shared_ptr<ResponseStream> stream, mcp::RunCalls::Shape shape,
                            mcp::RunCalls::Accepts accepts, http::Response head, http::Responder responder);
  io::Task<> resume(std::string session, std::string last_event_id, http::Response head,
                    http::Responder responder);
  io::Task<> listen(std::string session, mcp::Principal principal, http::Response head,
                    http::Responder responder);
  io::Task<> follow(std::shared_ptr<ResponseStream> stream, std::optional<std::uint64_t> after,
                    http::Responder responder);

  ToolHost& host_;
  StreamableHttpOptions options_;
  mcp::ServerCore core_;
  mcp::HttpEndpoint endpoint_;
  StreamStore store_;
  std::multimap<std::string, io::Event> listeners_;  ///< GET streams by session; set to end one
  io::TaskScope scope_;
};

}  // namespace prims::transport

#include "upstream/http_channel.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/wait.h"
#include "mcp/header_value.h"

namespace prims::upstream {
namespace {

constexpr Bytes kLargestAnswer = mib(64);
constexpr Milliseconds kShortWait{5000};
constexpr int kMostResumes = 20;
constexpr int kLongestRetry = 30'000;

bool is_stream(const http::ClientResponse& response) {
  return response.headers().get("Content-Type").value_or("").starts_with("text/event-stream");
}

/// A status without a JSON-RPC message in words.
Result<Answer> answer_of_status(int status, std::string_view body) {
  if (status == 401 || status == 403) {
    return fail(Kind::denied,
                fmt::format("the server refused access: HTTP {} {}", status, body.substr(0, 200)));
  }
  if (status >= 500)
    return fail(Kind::unavailable, fmt::format("the server failed: HTTP {} {}", status, body.substr(0, 200)));
  return Answer{status, std::nullopt};
}

}  // namespace

HttpChannel::HttpChannel(HttpTarget target, http::Url url)
    : target_(std::move(target)), url_(std::move(url)), client_(target_.client) {}

Result<std::shared_ptr<HttpChannel>> HttpChannel::open(HttpTarget target) {
  PRIMS_ASSIGN_OR_RETURN(http::Url url, http::parse_url(target.url));
  return std::shared_ptr<HttpChannel>(new HttpChannel(std::move(target), std::move(url)));
}

http::Headers HttpChannel::headers_for(const mcp::Dialect& dialect) const {
  http::Headers headers = target_.headers;
  headers.set("Accept", "application/json, text/event-stream");
  headers.set("MCP-Protocol-Version", dialect.version);
  if (session_ && dialect.era == mcp::Era::legacy) headers.set("Mcp-Session-Id", *session_);
  return headers;
}

http::Headers HttpChannel::headers_for(const Request& request) const {
  http::Headers headers = headers_for(request.dialect);
  headers.set("Content-Type", "application/json");
  if (request.message.method == "initialize") {
    // The version is what is being settled, and a new session must not claim an old one.
    headers.remove("MCP-Protocol-Version");
    headers.remove("Mcp-Session-Id");
  }
  if (request.dialect.era == mcp::Era::legacy) return headers;
  headers.set("Mcp-Method", request.message.method);
  if (!request.message.name.empty()) headers.set("Mcp-Name", mcp::encode_header_value(request.message.name));
  for (const auto& [name, value] : request.parameters) headers.set(fmt::format("Mcp-Param-{}", name), value);
  return headers;
}

io::Task<Result<http::ClientResponse>> HttpChannel::send(std::string method, http::Headers headers,
                                                         std::string body, Deadline deadline) {
  http::ClientRequest request;
  request.method = std::move(method);
  request.url = url_;
  request.headers = std::move(headers);
  request.body = std::move(body);
  request.allow_address = target_.allow_address;
  request.deadline = deadline;
  auto response = co_await client_.send(std::move(request));
  co_return response;
}

io::Task<Result<Answer>> HttpChannel::request(Request request) {
  return run_request(shared_from_this(), std::move(request));
}

io::Task<Result<Answer>> HttpChannel::run_request(std::shared_ptr<HttpChannel> self, Request request) {
  if (request.cancellation && request.cancellation->requested()) {
    co_return fail(Kind::cancelled, "the request was cancelled");
  }
  const io::Executor executor = co_await io::this_executor;
  const auto pending = std::make_shared<Pending>();
  pending->on_progress = request.on_progress;
  const auto cancellation = request.cancellation;
  const Deadline deadline = request.deadline;
  const bool tell =
      request.dialect.era == mcp::Era::legacy && request.give_up == Request::GiveUp::tell_server;
  const mcp::RequestId id = *request.message.id;
  const mcp::Dialect dialect = request.dialect;
  if (cancellation) {
    cancellation->on_request([pending] {
      pending->cancelled = true;
      pending->done.set();
    });
  }
  io::TaskScope scope(executor);
  scope.spawn(exchange(self, std::move(request), pending), "upstream request");
  auto woken = co_await pending->done.wait(deadline);
  if (cancellation) cancellation->on_request({});
  // In the modern era closing the connection is what cancels; a legacy server is told.
  if (!pending->answer) scope.cancel();
  [[maybe_unused]] auto joined = co_await scope.join();
  if (pending->answer) co_return *std::move(pending->answer);
  if (tell) {
    mcp::ClientCore core{""};
    [[maybe_unused]] auto told =
        co_await self->post_and_forget(core.cancelled(id).text, dialect, "notifications/cancelled");
  }
  const bool cancelled = pending->cancelled || (!woken && woken.error().kind == Kind::cancelled);
  if (cancelled) co_return fail(Kind::cancelled, "the request was cancelled");
  co_return fail(Kind::timed_out, "the server did not answer in time");
}

io::Task<> HttpChannel::exchange(std::shared_ptr<HttpChannel> self, Request request,
                                 std::shared_ptr<Pending> pending) {
  auto answer = co_await talk(self, std::move(request), pending);
  const bool given_up = pending->cancelled || (!answer && answer.error().kind == Kind::cancelled);
  if (!given_up) pending->answer = std::move(answer);
  pending->done.set();
}

io::Task<Result<Answer>> HttpChannel::talk(std::shared_ptr<HttpChannel> self, Request request,
                                           std::shared_ptr<Pending> pending) {
  const mcp::RequestId id = *request.message.id;
  auto sent = co_await self->send("POST", self->headers_for(request), request.message.text, request.deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(http::ClientResponse response, std::move(sent));
  if (request.message.method == "initialize") {
    const auto session = response.headers().get("Mcp-Session-Id");
    self->session_ = session ? std::optional(std::string(*session)) : std::nullopt;
  }
  if (is_stream(response)) {
    co_return co_await read_streams(self, std::move(response), std::move(request), std::move(pending));
  }
  co_return co_await read_whole(std::move(response), id);
}

io::Task<Result<Answer>> HttpChannel::read_whole(http::ClientResponse response, mcp::RequestId id) {
  const int status = response.status();
  auto read = co_await response.read_all(kLargestAnswer, Deadline::never());
  PRIMS_CO_ASSIGN_OR_RETURN(const std::string body, std::move(read));
  auto value = mcp::read_json(body);
  if (!value) co_return answer_of_status(status, body);
  auto message = mcp::read_message(*std::move(value));
  const bool mine =
      message && message->kind == mcp::Message::Kind::response && (!message->id || *message->id == id);
  if (!mine || status == 401 || status == 403 || status >= 500) co_return answer_of_status(status, body);
  co_return Answer{status, *std::move(message)};
}

io::Task<std::optional<Answer>> HttpChannel::take(std::shared_ptr<HttpChannel> self, std::string data,
                                                  mcp::RequestId id, mcp::Dialect dialect,
                                                  std::shared_ptr<Pending> pending) {
  auto value = mcp::read_json(data);
  if (!value) co_return std::nullopt;
  auto message = mcp::read_message(*std::move(value));
  if (!message) co_return std::nullopt;
  if (message->kind == mcp::Message::Kind::response) {
    if (message->id != id) co_return std::nullopt;
    co_return Answer{200, *std::move(message)};
  }
  if (message->kind == mcp::Message::Kind::request) {
    [[maybe_unused]] auto answered =
        co_await self->post_and_forget(mcp::answer_server(*message), dialect, "");
  } else if (const auto progress = mcp::read_progress(*message); progress && progress->token == id) {
    if (pending->on_progress && !pending->cancelled) pending->on_progress(*progress);
  }
  co_return std::nullopt;
}

io::Task<Result<Answer>> HttpChannel::read_streams(std::shared_ptr<HttpChannel> self,
                                                   http::ClientResponse response, Request request,
                                                   std::shared_ptr<Pending> pending) {
  std::string last_id;
  int retry = 1000;
  for (int attempt = 0; attempt <= kMostResumes; ++attempt) {
    http::SseReader reader(std::move(response), kLargestAnswer);
    for (;;) {
      auto next = co_await reader.next(Deadline::never());
      if (!next && next.error().kind == Kind::cancelled) co_return std::unexpected(next.error());
      if (!next || !next->has_value()) break;
      http::SseEvent event = **std::move(next);
      if (event.id) last_id = *event.id;
      if (event.retry) retry = std::clamp(*event.retry, 0, kLongestRetry);
      if (event.data.empty()) continue;
      auto answer = co_await take(self, std::move(event.data), *request.message.id, request.dialect, pending);
      if (answer) co_return *std::move(answer);
    }
    // A stream that ends without its answer is lost, unless a legacy server named a place to go on from.
    if (request.dialect.era != mcp::Era::legacy || last_id.empty()) break;
    auto slept = co_await io::sleep_until(Deadline::after(Milliseconds(retry)));
    PRIMS_CO_RETURN_ON_ERROR(std::move(slept));
    http::Headers headers = self->headers_for(request.dialect);
    headers.set("Accept", "text/event-stream");
    headers.set("Last-Event-ID", last_id);
    auto again = co_await self->send("GET", std::move(headers), "", request.deadline);
    PRIMS_CO_ASSIGN_OR_RETURN(response, std::move(again));
    if (!is_stream(response)) break;
  }
  co_return fail(Kind::unavailable, "the server's stream ended without an answer");
}

io::Task<Result<>> HttpChannel::post_and_forget(std::string body, mcp::Dialect dialect, std::string method) {
  http::Headers headers = headers_for(dialect);
  headers.set("Content-Type", "application/json");
  if (dialect.era == mcp::Era::modern && !method.empty()) headers.set("Mcp-Method", std::move(method));
  auto sent = co_await send("POST", std::move(headers), std::move(body), Deadline::after(kShortWait));
  PRIMS_CO_ASSIGN_OR_RETURN(http::ClientResponse response, std::move(sent));
  auto rest = co_await response.read_all(kib(64), Deadline::after(kShortWait));
  PRIMS_CO_RETURN_ON_ERROR(std::move(rest));
  if (response.status() >= 400) {
    co_return fail(Kind::unavailable,
                   fmt::format("the server refused a notification: HTTP {}", response.status()));
  }
  co_return Result<>();
}

io::Task<Result<>> HttpChannel::notify(mcp::Outgoing message, mcp::Dialect dialect) {
  const auto self = shared_from_this();
  session_dialect_ = dialect;
  auto posted =
      co_await post_and_forget(std::move(message.text), std::move(dialect), std::move(message.method));
  co_return posted;
}

io::Task<> HttpChannel::close() {
  const auto self = shared_from_this();
  if (!session_) co_return;
  auto sent = co_await send("DELETE", headers_for(session_dialect_), "", Deadline::after(kShortWait));
  session_.reset();
  if (!sent) co_return;
  [[maybe_unused]] auto rest = co_await sent->read_all(kib(64), Deadline::after(kShortWait));
}

}  // namespace prims::upstream

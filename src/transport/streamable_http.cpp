#include "transport/streamable_http.h"

#include <fmt/format.h>

#include <utility>

namespace prims::transport {
namespace {

constexpr std::string_view kFirstResumable = "2025-03-26";
constexpr std::string_view kFirstPrimed = "2025-11-25";  // older clients cannot parse an event without data

/// A comment, which every reader of event streams skips.
constexpr std::string_view kSignOfLife = ": still here\n\n";

/// The headers of a request as the protocol core reads them.
class HeaderView final : public mcp::Headers {
 public:
  explicit HeaderView(const http::Headers& headers) : headers_(headers) {}
  std::vector<std::string_view> all(std::string_view name) const override { return headers_.all(name); }

 private:
  const http::Headers& headers_;
};

http::Response head_with(const std::vector<mcp::HttpHeader>& headers) {
  http::Response head;
  for (const mcp::HttpHeader& header : headers) head.headers.add(header.name, header.value);
  return head;
}

http::Response json_answer(http::Response head, int status, std::string body) {
  head.status = status;
  if (!body.empty()) head.headers.set("Content-Type", "application/json");
  head.body = std::move(body);
  return head;
}

http::Response stream_head(http::Response head) {
  head.status = 200;
  head.headers.set("Content-Type", "text/event-stream");
  head.headers.set("Cache-Control", "no-cache");
  head.headers.set("X-Accel-Buffering", "no");  // reverse proxies pass each event on at once
  return head;
}

std::string event_text(std::string_view id, std::string_view message) {
  // Our JSON has no line breaks, so one data line holds it.
  if (id.empty()) return fmt::format("data: {}\n\n", message);
  return fmt::format("id: {}\ndata: {}\n\n", id, message);
}

/// The events after number `after`, as they go out; moves `after` on. With ids where a client may come back.
std::string unseen_events(const ResponseStream& stream, std::uint64_t& after, bool with_ids) {
  std::string piece;
  for (const auto& event : stream.log().events()) {
    if (event.number <= after) continue;
    const std::string id = with_ids ? mcp::EventId{stream.number(), event.number}.text() : "";
    piece += event_text(id, event.message);
    after = event.number;
  }
  return piece;
}

}  // namespace

StreamableHttp::StreamableHttp(io::Executor executor, ToolHost& host, mcp::ServerInfo info,
                               StreamableHttpOptions options)
    : host_(host),
      options_(std::move(options)),
      core_(std::move(info), host.tools(), options_.calls),
      endpoint_(core_, options_.origins, options_.sessions),
      scope_(std::move(executor)) {
  endpoint_.on_session_end([this](const std::string& session) {
    store_.drop(session);
    const auto [from, to] = listeners_.equal_range(session);
    for (auto it = from; it != to; ++it) it->second.set();
  });
}

bool StreamableHttp::serves(std::string_view path) {
  return path == "/mcp" || path == "/mcp/";
}

void StreamableHttp::close_streams() {
  for (const auto& [session, event] : listeners_) event.set();
}

io::Task<Result<>> StreamableHttp::end_calls(Deadline deadline) {
  core_.in_flight().cancel_all();
  auto ended = co_await scope_.join(deadline);
  co_return ended;
}

mcp::HttpReaction StreamableHttp::react(const http::Request& request, const mcp::Principal& principal) {
  const HeaderView headers(request.headers);
  return endpoint_.handle(mcp::HttpRequest{request.method, headers, request.body, principal, Clock::now()});
}

io::Task<> StreamableHttp::handle(http::Request request, http::Responder responder,
                                  mcp::Principal principal) {
  mcp::HttpReaction reaction = react(request, principal);
  http::Response head = head_with(reaction.headers);
  if (auto* reply = std::get_if<mcp::PlainReply>(&reaction.action)) {
    http::Response whole =
        json_answer(std::move(head), static_cast<int>(reply->status), std::move(reply->body));
    [[maybe_unused]] auto sent = co_await responder.send(std::move(whole));
  } else if (auto* run = std::get_if<mcp::RunCalls>(&reaction.action)) {
    co_await answer(std::move(*run), std::move(head), std::move(responder));
  } else {
    auto open = std::get<mcp::OpenStream>(std::move(reaction.action));
    if (open.last_event_id) {
      co_await resume(std::move(open.session), *std::move(open.last_event_id), std::move(head),
                      std::move(responder));
    } else {
      co_await listen(std::move(open.session), std::move(principal), std::move(head), std::move(responder));
    }
  }
}

io::Task<> StreamableHttp::answer(mcp::RunCalls run, http::Response head, http::Responder responder) {
  const bool may_stream = run.accepts != mcp::RunCalls::Accepts::json;
  const auto stream = std::make_shared<ResponseStream>(store_.next_number(), run.calls.size());
  for (std::string& message : run.ready) stream->add_response(std::move(message));
  std::vector<std::shared_ptr<RunningCall>> calls;
  for (mcp::StartedCall& started : run.calls) {
    if (!may_stream) started.token.reset();
    calls.push_back(RunningCall::start(scope_, host_, std::move(started), stream));
  }
  const auto closed = responder.closed();
  closed->on_request([event = stream->changed(), era = run.era, calls] {
    event.set();
    if (era != mcp::Era::modern) return;
    for (const auto& call : calls) call->cancel();
  });
  const Deadline decide = may_stream ? Deadline::after(options_.stream_after) : Deadline::never();
  while (!stream->finished() && !stream->has_progress() && !closed->requested() && !decide.passed()) {
    stream->changed().reset();
    auto woken = co_await stream->changed().wait(decide);
    if (!woken && woken.error().kind == Kind::cancelled) co_return;
  }
  if (closed->requested()) co_return;
  if (stream->finished() && !stream->has_progress()) {
    co_await answer_plainly(stream, run.shape, run.accepts, std::move(head), std::move(responder));
    co_return;
  }
  const bool resumable = run.era == mcp::Era::legacy && run.version >= kFirstResumable;
  if (resumable) store_.keep(run.session, stream, Clock::now());
  http::Response opening = stream_head(std::move(head));
  if (resumable && run.version >= kFirstPrimed)
    opening.body = event_text(mcp::EventId{stream->number(), 0}.text(), "");
  auto opened = co_await responder.open(std::move(opening));
  if (!opened) co_return;
  const auto from = resumable ? std::optional<std::uint64_t>(0) : std::nullopt;
  co_await follow(stream, from, std::move(responder));
}

io::Task<> StreamableHttp::answer_plainly(std::shared_ptr<ResponseStream> stream, mcp::RunCalls::Shape shape,
                                          mcp::RunCalls::Accepts accepts, http::Response head,
                                          http::Responder responder) {
  const std::vector<std::string> responses = stream->responses();
  http::Response whole;
  if (responses.empty()) {
    // Everything was cancelled: nothing may be said, but the HTTP request needs an end.
    whole = accepts == mcp::RunCalls::Accepts::json ? json_answer(std::move(head), 202, "")
                                                    : stream_head(std::move(head));
  } else if (accepts == mcp::RunCalls::Accepts::stream) {
    whole = stream_head(std::move(head));
    for (const std::string& response : responses) whole.body += event_text("", response);
  } else if (shape == mcp::RunCalls::Shape::batch) {
    whole = json_answer(std::move(head), 200, fmt::format("[{}]", fmt::join(responses, ",")));
  } else {
    whole = json_answer(std::move(head), 200, responses.front());
  }
  [[maybe_unused]] auto sent = co_await responder.send(std::move(whole));
}

io::Task<> StreamableHttp::follow(std::shared_ptr<ResponseStream> stream, std::optional<std::uint64_t> after,
                                  http::Responder responder) {
  const bool with_ids = after.has_value();
  std::uint64_t seen = after.value_or(0);
  const std::uint64_t turn = stream->take_over();
  const auto closed = responder.closed();
  while (!closed->requested() && stream->is_reader(turn)) {
    std::string piece = unseen_events(*stream, seen, with_ids);
    if (piece.empty() && stream->finished()) {
      [[maybe_unused]] auto finished = co_await responder.finish();
      co_return;
    }
    if (piece.empty()) {
      stream->changed().reset();
      auto woken = co_await stream->changed().wait(Deadline::after(options_.sign_of_life));
      if (woken) continue;
      if (woken.error().kind == Kind::cancelled) co_return;
      piece = std::string(kSignOfLife);
    }
    auto written = co_await responder.write(std::move(piece));
    if (!written) co_return;
  }
  responder.abort();
}

io::Task<> StreamableHttp::resume(std::string session, std::string last_event_id, http::Response head,
                                  http::Responder responder) {
  const auto last = mcp::EventId::parse(last_event_id);
  const auto stream = last ? store_.find(session, last->stream) : nullptr;
  if (!stream) {
    const mcp::RpcError error{mcp::RpcCode::invalid_request, "that event is not kept here any more",
                              std::nullopt};
    http::Response refusal = json_answer(std::move(head), 400, mcp::write_error(std::nullopt, error));
    [[maybe_unused]] auto refused = co_await responder.send(std::move(refusal));
    co_return;
  }
  if (stream->finished() && last->number >= stream->log().last()) {
    http::Response nothing = json_answer(std::move(head), 204, "");
    [[maybe_unused]] auto sent = co_await responder.send(std::move(nothing));
    co_return;
  }
  responder.closed()->on_request([event = stream->changed()] { event.set(); });
  http::Response opening = stream_head(std::move(head));
  auto opened = co_await responder.open(std::move(opening));
  if (!opened) co_return;
  co_await follow(stream, last->number, std::move(responder));
}

io::Task<> StreamableHttp::listen(std::string session, mcp::Principal principal, http::Response head,
                                  http::Responder responder) {
  if (listeners_.count(session) >= options_.streams_per_session) {
    const mcp::RpcError error{mcp::RpcCode::invalid_request, "this session has too many open streams",
                              std::nullopt};
    http::Response refusal = json_answer(std::move(head), 409, mcp::write_error(std::nullopt, error));
    [[maybe_unused]] auto refused = co_await responder.send(std::move(refusal));
    co_return;
  }
  const io::Event ended;
  const auto entry = listeners_.emplace(session, ended);
  responder.closed()->on_request([ended] { ended.set(); });
  // We have nothing to say by ourselves; the stream is there because old clients open it at once and expect
  // it to stay.
  http::Response opening = stream_head(std::move(head));
  auto written = co_await responder.open(std::move(opening));
  while (written && !ended.is_set() && endpoint_.touch(session, principal, Clock::now())) {
    auto woken = co_await ended.wait(Deadline::after(options_.sign_of_life));
    if (woken) break;
    written = co_await responder.write(std::string(kSignOfLife));
  }
  listeners_.erase(entry);
  [[maybe_unused]] auto finished = co_await responder.finish();
}

}  // namespace prims::transport

#include "upstream/stdio_channel.h"

#include <fmt/format.h>

#include <array>

#include "base/log.h"
#include "base/text.h"
#include "io/loop.h"

namespace prims::upstream {
namespace {

constexpr Bytes kLongestLine = mib(64);
constexpr std::size_t kErrorsKept = 4096;
constexpr std::size_t kMostPending = 1024;
constexpr Milliseconds kGrace{2000};

}  // namespace

StdioChannel::StdioChannel(std::unique_ptr<ChildProcess> child)
    : child_(std::move(child)), reader_(child_->out(), kLongestLine), writer_(child_->in()) {}

Result<std::shared_ptr<StdioChannel>> StdioChannel::open(const io::Executor& executor,
                                                         const Command& command) {
  PRIMS_ASSIGN_OR_RETURN(auto child, ChildProcess::start(command));
  std::shared_ptr<StdioChannel> channel(new StdioChannel(std::move(child)));
  io::spawn(executor, read(channel), "upstream output");
  io::spawn(executor, read_errors(channel), "upstream errors");
  io::spawn(executor, write(channel), "upstream input");
  return channel;
}

io::Task<Result<Answer>> StdioChannel::request(Request request) {
  return run_request(shared_from_this(), std::move(request));
}

io::Task<Result<Answer>> StdioChannel::run_request(std::shared_ptr<StdioChannel> self, Request request) {
  if (request.cancellation && request.cancellation->requested()) {
    co_return fail(Kind::cancelled, "the request was cancelled");
  }
  if (self->ended_) co_return fail(Kind::unavailable, self->why_ended());
  if (self->pending_.size() >= kMostPending)
    co_return fail(Kind::exhausted, "too many requests wait for this server");
  const auto pending = std::make_shared<Pending>();
  pending->on_progress = std::move(request.on_progress);
  const mcp::RequestId id = *request.message.id;
  self->pending_[id] = pending;
  if (request.cancellation) {
    request.cancellation->on_request([pending] {
      pending->cancelled = true;
      pending->done.set();
    });
  }
  auto sent = co_await self->writer_.send(std::move(request.message.text));
  Result<> woken;
  if (sent) woken = co_await pending->done.wait(request.deadline);
  if (request.cancellation) request.cancellation->on_request({});
  self->pending_.erase(id);
  if (pending->answer) co_return *std::move(pending->answer);
  if (!sent || self->ended_) {
    // The program's last words arrive on another pipe, a moment before or after the end of its output.
    [[maybe_unused]] auto read = co_await self->errors_read_.wait(Deadline::after(Milliseconds(500)));
    co_return fail(Kind::unavailable, self->why_ended());
  }
  if (request.give_up == Request::GiveUp::tell_server) {
    mcp::ClientCore core{""};
    self->writer_.offer(core.cancelled(id).text);
  }
  const bool cancelled = pending->cancelled || (!woken && woken.error().kind == Kind::cancelled);
  if (cancelled) co_return fail(Kind::cancelled, "the request was cancelled");
  co_return fail(Kind::timed_out, "the server did not answer in time");
}

io::Task<Result<>> StdioChannel::notify(mcp::Outgoing message, mcp::Dialect) {
  auto sent = co_await writer_.send(std::move(message.text));
  co_return sent;
}

void StdioChannel::take(std::string_view line) {
  auto value = mcp::read_json(line);
  if (!value) return;
  auto read = mcp::read_message(*std::move(value));
  if (!read) return;
  mcp::Message& message = *read;
  switch (message.kind) {
    case mcp::Message::Kind::request:
      writer_.offer(mcp::answer_server(message));
      break;
    case mcp::Message::Kind::notification:
      if (const auto progress = mcp::read_progress(message)) {
        const auto found = pending_.find(progress->token);
        if (found != pending_.end() && found->second->on_progress) found->second->on_progress(*progress);
      }
      break;
    case mcp::Message::Kind::response:
      if (!message.id) return;
      if (const auto found = pending_.find(*message.id); found != pending_.end() && !found->second->answer) {
        found->second->answer = Answer{200, std::move(message)};
        found->second->done.set();
      }
      break;
  }
}

io::Task<> StdioChannel::read(std::shared_ptr<StdioChannel> self) {
  for (;;) {
    auto next = co_await self->reader_.next();
    if (!next || !next->has_value()) break;
    if ((*next)->kind == transport::LineReader::Line::Kind::whole) {
      self->take((*next)->text);
    } else {
      log::warning("an upstream server sent a line of more than {}; it was skipped", to_string(kLongestLine));
    }
  }
  self->end();
}

io::Task<> StdioChannel::read_errors(std::shared_ptr<StdioChannel> self) {
  std::array<char, 4096> chunk{};
  for (;;) {
    auto got = co_await self->child_->errors().read_some(chunk, Deadline::never());
    if (!got || *got == 0) break;
    self->last_errors_.append(chunk.data(), *got);
    if (self->last_errors_.size() > kErrorsKept)
      self->last_errors_.erase(0, self->last_errors_.size() - kErrorsKept);
  }
  self->errors_read_.set();
}

io::Task<> StdioChannel::write(std::shared_ptr<StdioChannel> self) {
  [[maybe_unused]] auto written = co_await self->writer_.run();
  // A program that does not read its input any more will not answer either.
  if (!written) self->child_->out().close();
}

void StdioChannel::end() {
  ended_ = true;
  writer_.close();
  for (const auto& [id, pending] : pending_) pending->done.set();
}

std::string StdioChannel::why_ended() const {
  if (last_errors_.empty()) return "the server has ended";
  return fmt::format("the server has ended; its last words: {}", last_lines(to_utf8(last_errors_), 5));
}

io::Task<> StdioChannel::close() {
  const auto self = shared_from_this();
  end();
  co_await child_->stop(kGrace);
  child_->out().close();
  child_->errors().close();
}

void StdioChannel::abandon() {
  end();
  child_->in().close();
  child_->out().close();
  child_->errors().close();
}

}  // namespace prims::upstream

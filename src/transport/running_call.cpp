#include "transport/running_call.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace prims::transport {

RunningCall::RunningCall(mcp::StartedCall started, std::shared_ptr<Outlet> outlet)
    : started_(std::move(started)),
      outlet_(std::move(outlet)),
      cancellation_(std::make_shared<io::Cancellation>()),
      meter_(Clock::now()) {}

std::shared_ptr<RunningCall> RunningCall::start(io::TaskScope& scope, ToolHost& host,
                                                mcp::StartedCall started, std::shared_ptr<Outlet> outlet) {
  std::shared_ptr<RunningCall> call(new RunningCall(std::move(started), std::move(outlet)));
  call->started_.ticket.on_cancel([weak = std::weak_ptr(call)] {
    if (const auto self = weak.lock()) self->cancel();
  });
  scope.spawn(run(call, &host), "tool call");
  if (call->outlet_ && call->started_.token) scope.spawn(pace(call), "progress");
  return call;
}

void RunningCall::cancel() {
  if (!outlet_) return;
  end(std::nullopt);
  cancellation_->request();
}

void RunningCall::report(std::string text) {
  if (!outlet_ || !started_.token || text.empty()) return;
  meter_.append(text);
  say(meter_.take(Clock::now()));
  changed_.set();
}

void RunningCall::say(const std::optional<mcp::ProgressUpdate>& update) {
  if (outlet_ && update) outlet_->progress(started_.writer->progress(*started_.token, *update));
}

void RunningCall::end(std::optional<std::string> response) {
  const auto outlet = std::exchange(outlet_, nullptr);
  changed_.set();
  if (outlet) outlet->done(std::move(response));
}

io::Task<> RunningCall::run(std::shared_ptr<RunningCall> self, ToolHost* host) {
  std::string response;
  try {
    std::shared_ptr<ProgressSink> sink = self;
    mcp::ToolResult result =
        co_await host->call(std::move(self->started_.call), std::move(sink), self->cancellation_);
    // After a cancellation the server that started this call may be gone; nothing of it is touched.
    if (self->outlet_) response = self->started_.writer->tool_result(self->started_.id, result);
  } catch (const std::exception& failure) {
    log::error("a tool call failed inside: {}", failure.what());
    const mcp::RpcError error{mcp::RpcCode::internal_error, "the server failed while it ran the tool",
                              std::nullopt};
    response = mcp::write_error(self->started_.id, error);
  }
  if (self->started_.token) self->say(self->meter_.finish());
  // The id is free before its response is out, so a client may use it again at once.
  self->started_.ticket = mcp::Ticket();
  self->end(std::move(response));
}

io::Task<> RunningCall::pace(std::shared_ptr<RunningCall> self) {
  while (self->outlet_) {
    self->changed_.reset();
    const Deadline due{self->meter_.due()};
    [[maybe_unused]] auto woken = co_await self->changed_.wait(due);
    if (!woken && woken.error().kind == Kind::cancelled) co_return;
    self->say(self->meter_.take(Clock::now()));
  }
}

}  // namespace prims::transport

#include "io/scope.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <list>

#include "io/event.h"
#include "io/loop.h"

namespace prims::io {
namespace asio = boost::asio;

struct TaskScope::State {
  explicit State(Executor on) : executor(std::move(on)) { empty.set(); }

  Executor executor;
  std::list<asio::cancellation_signal> children;
  Event empty;
};

TaskScope::TaskScope(Executor executor) : state_(std::make_shared<State>(std::move(executor))) {}

TaskScope::TaskScope(TaskScope&&) noexcept = default;

TaskScope::~TaskScope() {
  if (state_) cancel();
}

Task<> TaskScope::run_child(std::shared_ptr<State> state, Task<> task) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await std::move(task);
}

void TaskScope::spawn(Task<> task, std::string name) {
  auto child = state_->children.emplace(state_->children.end());
  state_->empty.reset();
  auto ended = [state = state_, child, name = std::move(name)](const std::exception_ptr& failure) {
    report_end(name, failure);
    state->children.erase(child);
    if (state->children.empty()) state->empty.set();
  };
  asio::co_spawn(state_->executor, run_child(state_, std::move(task)),
                 asio::bind_cancellation_slot(child->slot(), std::move(ended)));
}

Task<Result<>> TaskScope::join(Deadline deadline) {
  return state_->empty.wait(deadline);
}

void TaskScope::cancel() {
  // Emitting may end children at once, so the list is walked with the next element in hand.
  for (auto child = state_->children.begin(); child != state_->children.end();) {
    auto next = std::next(child);
    child->emit(asio::cancellation_type::all);
    child = next;
  }
}

std::size_t TaskScope::size() const {
  return state_->children.size();
}

}  // namespace prims::io

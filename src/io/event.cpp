#include "io/event.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <vector>

namespace prims::io {

struct Event::State {
  bool set = false;
  std::vector<Waiter*> waiters;
};

/// Lives in the frame of a waiting Task.
struct Event::Waiter {
  Waiter(std::shared_ptr<State> shared, Executor executor) : state(std::move(shared)), timer(executor) {
    state->waiters.push_back(this);
  }
  ~Waiter() { std::erase(state->waiters, this); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  std::shared_ptr<State> state;
  boost::asio::steady_timer timer;
  bool woken = false;  // by set(), even if reset() follows before the Task runs again
};

Event::Event() : state_(std::make_shared<State>()) {}

void Event::set() const {
  state_->set = true;
  for (Waiter* waiter : state_->waiters) {
    waiter->woken = true;
    waiter->timer.cancel();
  }
}

void Event::reset() const {
  state_->set = false;
}

bool Event::is_set() const {
  return state_->set;
}

Task<Result<>> Event::wait(Deadline deadline) const {
  return wait_on(state_, deadline);
}

Task<Result<>> Event::wait_on(std::shared_ptr<State> state, Deadline deadline) {
  if (state->set) co_return Result<>();
  const Executor executor = co_await this_executor;
  Waiter waiter(std::move(state), executor);
  waiter.timer.expires_at(deadline.at);
  auto [error] = co_await waiter.timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  if (waiter.woken) co_return Result<>();
  if (error) co_return fail(Kind::cancelled, "the wait was cancelled");
  co_return fail(Kind::timed_out, "the wait took too long");
}

}  // namespace prims::io

#include "io/wait.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/unique_fd.h"
#include "io/stream.h"

namespace prims::io {
namespace asio = boost::asio;

Task<Result<>> sleep_until(Deadline deadline) {
  const Executor executor = co_await this_executor;
  asio::steady_timer timer(executor, deadline.at);
  auto [error] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (error) co_return fail(Kind::cancelled, "the sleep was cancelled");
  co_return Result<>();
}

// A duplicate is registered with the kernel, so that other registrations of the same descriptor do not matter
// and nothing is ever closed twice.
Task<Result<>> wait_readable(int fd, Deadline deadline) {
  UniqueFd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!duplicate) co_return fail_errno("fcntl F_DUPFD_CLOEXEC");
  Stream stream = Stream::only_waited_for(std::move(duplicate));
  co_return co_await stream.readable(deadline);
}

Task<Result<>> wait_writable(int fd, Deadline deadline) {
  UniqueFd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!duplicate) co_return fail_errno("fcntl F_DUPFD_CLOEXEC");
  Stream stream = Stream::only_waited_for(std::move(duplicate));
  co_return co_await stream.writable(deadline);
}

Task<Result<ProcessEnd>> wait_process(int pidfd, Deadline deadline) {
  auto ended = co_await wait_readable(pidfd, deadline);
  PRIMS_CO_RETURN_ON_ERROR(std::move(ended));
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED) != 0) {
    if (errno != EINTR) co_return fail_errno("waitid");
  }
  if (info.si_code == CLD_EXITED) co_return ProcessEnd{.exit_code = info.si_status};
  co_return ProcessEnd{.signal = info.si_status};
}

struct Signals::State {
  explicit State(const Executor& executor) : set(executor) {}
  asio::signal_set set;
};

Signals::Signals(Executor executor, std::initializer_list<int> numbers)
    : state_(std::make_shared<State>(executor)) {
  for (const int number : numbers) state_->set.add(number);
}

Signals::Signals(Signals&&) noexcept = default;

Signals::~Signals() {
  if (state_) state_->set.clear();
}

Task<Result<int>> Signals::next() {
  return next_of(state_);
}

Task<Result<int>> Signals::next_of(std::shared_ptr<State> state) {
  auto [error, number] = co_await state->set.async_wait(asio::as_tuple(asio::use_awaitable));
  if (error) co_return fail(Kind::cancelled, "the wait for a signal was cancelled");
  co_return number;
}

}  // namespace prims::io

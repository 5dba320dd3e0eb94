#include "io/stream.h"

#include <fcntl.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

namespace prims::io {
namespace asio = boost::asio;

namespace {

/// So many reads or writes in a row may succeed at once before other Tasks get their turn.
constexpr unsigned kTurn = 16;

}  // namespace

struct Stream::State {
  UniqueFd unregistered;                             // until a Task first has to wait
  std::optional<asio::posix::stream_descriptor> io;  // owns the descriptor afterwards

  unsigned in_a_row = 0;

  int fd() { return io && io->is_open() ? io->native_handle() : unregistered.get(); }

  /// An Error for a descriptor that the kernel cannot poll.
  Result<> enroll(Executor executor) {
    if (io) return io->is_open() ? Result<>() : fail(Kind::cancelled, "the descriptor is closed");
    if (!unregistered) return fail(Kind::cancelled, "the descriptor is closed");
    asio::posix::stream_descriptor fresh(executor);
    boost::system::error_code error;
    fresh.assign(unregistered.get(), error);
    if (error) return fail_errno("epoll_ctl", error.value());
    (void)unregistered.release();
    io.emplace(std::move(fresh));
    return {};
  }
};

Stream::Stream() : state_(std::make_shared<State>()) {}

Stream::Stream(UniqueFd fd) : Stream() {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags >= 0) ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
  state_->unregistered = std::move(fd);
}

Stream Stream::only_waited_for(UniqueFd fd) {
  Stream stream;
  stream.state_->unregistered = std::move(fd);
  return stream;
}

Stream::Stream(Stream&& other) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (state_) close();
    state_ = std::move(other.state_);
  }
  return *this;
}

Stream::~Stream() {
  if (state_) close();
}

int Stream::fd() const {
  return state_->fd();
}

void Stream::close() {
  state_->unregistered.reset();
  boost::system::error_code ignored;
  if (state_->io) state_->io->close(ignored);
}

Task<Result<>> Stream::readable(Deadline deadline) {
  return wait(state_, Ready::read, deadline);
}

Task<Result<>> Stream::writable(Deadline deadline) {
  return wait(state_, Ready::write, deadline);
}

Task<Result<std::size_t>> Stream::read_some(std::span<char> into, Deadline deadline) {
  return read_from(state_, into, deadline);
}

Task<Result<>> Stream::write_all(std::string_view data, Deadline deadline) {
  return write_to(state_, data, deadline);
}

Task<Result<>> Stream::wait(std::shared_ptr<State> state, Ready what, Deadline deadline) {
  const Executor executor = co_await this_executor;
  PRIMS_CO_RETURN_ON_ERROR(state->enroll(executor));
  state->in_a_row = 0;
  const auto type = what == Ready::read ? asio::posix::descriptor_base::wait_read
                                        : asio::posix::descriptor_base::wait_write;
  boost::system::error_code error;
  bool expired = false;
  if (deadline.at == Deadline::never().at) {
    std::tie(error) = co_await state->io->async_wait(type, asio::as_tuple(asio::use_awaitable));
  } else {
    asio::steady_timer timer(executor, deadline.at);
    auto group = asio::experimental::make_parallel_group(state->io->async_wait(type, asio::deferred),
                                                         timer.async_wait(asio::deferred));
    auto [order, wait_error, timer_error] =
        co_await group.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
    error = wait_error;
    expired = !timer_error;
  }
  if (!error) co_return Result<>();
  if (expired) co_return fail(Kind::timed_out, "the descriptor was not ready in time");
  if (error == asio::error::operation_aborted) co_return fail(Kind::cancelled, "the wait was cancelled");
  co_return fail_errno("wait for descriptor", error.value());
}

/// Lets others run now and then; fails once the descriptor is closed.
Task<Result<>> Stream::take_turn(std::shared_ptr<State> state) {
  if (++state->in_a_row >= kTurn) {
    state->in_a_row = 0;
    const Executor executor = co_await this_executor;
    co_await asio::post(executor, asio::use_awaitable);
  }
  if (state->fd() < 0) co_return fail(Kind::cancelled, "the descriptor is closed");
  co_return Result<>();
}

Task<Result<std::size_t>> Stream::read_from(std::shared_ptr<State> state, std::span<char> into,
                                            Deadline deadline) {
  auto turn = co_await take_turn(state);
  PRIMS_CO_RETURN_ON_ERROR(std::move(turn));
  for (;;) {
    const ssize_t got = ::read(state->fd(), into.data(), into.size());
    if (got >= 0) co_return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return fail_errno("read");
    auto ready = co_await wait(state, Ready::read, deadline);
    PRIMS_CO_RETURN_ON_ERROR(std::move(ready));
  }
}

Task<Result<>> Stream::write_to(std::shared_ptr<State> state, std::string_view data, Deadline deadline) {
  auto turn = co_await take_turn(state);
  PRIMS_CO_RETURN_ON_ERROR(std::move(turn));
  while (!data.empty()) {
    const ssize_t put = ::write(state->fd(), data.data(), data.size());
    if (put >= 0) {
      data.remove_prefix(static_cast<std::size_t>(put));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return fail_errno("write");
    auto ready = co_await wait(state, Ready::write, deadline);
    PRIMS_CO_RETURN_ON_ERROR(std::move(ready));
  }
  co_return Result<>();
}

}  // namespace prims::io

#include "io/loop.h"

#include <csignal>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include "base/log.h"

namespace prims::io {

void report_end(const std::string& name, const std::exception_ptr& failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    if (error.code() == boost::asio::error::operation_aborted) return;
    log::error("{} ended with an exception: {}", name, error.what());
  } catch (const std::exception& error) {
    log::error("{} ended with an exception: {}", name, error.what());
  } catch (...) {
    log::error("{} ended with an unknown exception", name);
  }
}

void spawn(Executor executor, Task<> task, std::string name) {
  boost::asio::co_spawn(
      executor, std::move(task),
      [name = std::move(name)](const std::exception_ptr& failure) { report_end(name, failure); });
}

Loop::Loop() : work_(boost::asio::make_work_guard(context_)) {
  std::signal(SIGPIPE, SIG_IGN);
}

Loop::~Loop() = default;

void Loop::run() {
  context_.run();
  context_.restart();
}

void Loop::stop() {
  context_.stop();
}

void Loop::post(std::move_only_function<void()> action) {
  boost::asio::post(context_, std::move(action));
}

void Loop::run_to_end(Task<> task) {
  bool done = false;
  std::exception_ptr failure;
  auto ended = [&](std::exception_ptr thrown) {
    done = true;
    failure = std::move(thrown);
  };
  boost::asio::co_spawn(context_, std::move(task), ended);
  while (!done) {
    if (context_.run_one() == 0) context_.restart();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace prims::io

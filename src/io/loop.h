// The event loop: one thread, any number of Tasks. Everything in this folder but Loop::post, Loop::stop and
// the functions given to Workers runs on that thread. Making a Loop sets SIGPIPE to ignored for the process;
// programs started with exec need it set back to default.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "io/task.h"

namespace prims::io {

/// Starts a Task that nobody waits for. Runs up to its first suspension at once when called on the loop. An
/// exception that leaves the Task is written to the log under `name`.
void spawn(Executor executor, Task<> task, std::string name);

/// Logs an exception that left a Task, unless it only says that the Task was cancelled.
void report_end(const std::string& name, const std::exception_ptr& failure);

class Loop {
 public:
  Loop();
  /// Destroys suspended Tasks where they stand; objects they refer to must still exist or not be touched by
  /// destructors.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Serves until stop().
  void run();

  /// Any thread. A stop before run() ends that run at once.
  void stop();

  /// Any thread: runs the action on the loop.
  void post(std::move_only_function<void()> action);

  void spawn(Task<> task, std::string name) { io::spawn(executor(), std::move(task), std::move(name)); }

  /// Serves until `task` has ended and returns (or throws) what it ended with. Not while run() is active.
  template <class T>
  T run_until_done(Task<T> task) {
    if constexpr (std::is_void_v<T>) {
      run_to_end(std::move(task));
    } else {
      std::optional<T> value;
      run_to_end(keep(std::move(task), &value));
      return std::move(*value);
    }
  }

  Executor executor() { return context_.get_executor(); }
  boost::asio::io_context& context() { return context_; }

 private:
  template <class T>
  static Task<> keep(Task<T> task, std::optional<T>* kept) {
    T value = co_await std::move(task);
    kept->emplace(std::move(value));
  }
  void run_to_end(Task<> task);

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
};

}  // namespace prims::io

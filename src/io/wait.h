// Waits for time, for descriptors that somebody else owns, for the end of processes, and for signals to this
// program.
#pragma once

#include <initializer_list>
#include <memory>

#include "base/deadline.h"
#include "io/task.h"

namespace prims::io {

/// Fails only with Kind::cancelled, when the Task was asked to end.
Task<Result<>> sleep_until(Deadline deadline);

/// The descriptor stays the caller's and must stay open while the Task waits. Several waits on one descriptor
/// are fine.
Task<Result<>> wait_readable(int fd, Deadline deadline);
Task<Result<>> wait_writable(int fd, Deadline deadline);

/// How a child ended.
struct ProcessEnd {
  int exit_code = 0;  ///< meaningful when signal is 0
  int signal = 0;
};

/// Waits for the end of a child and reaps it; the child stays a zombie until then. For a process that is not
/// a child wait_readable(pidfd) tells when it has ended.
Task<Result<ProcessEnd>> wait_process(int pidfd, Deadline deadline);

/// Takes signals over from their default action for as long as it exists.
class Signals {
 public:
  Signals(Executor executor, std::initializer_list<int> numbers);
  Signals(Signals&&) noexcept;
  ~Signals();

  /// The next signal that arrives, or arrived since the last call.
  Task<Result<int>> next();

 private:
  struct State;
  static Task<Result<int>> next_of(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // shared with the Task that waits
};

}  // namespace prims::io

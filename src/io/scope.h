// Tasks that belong together: their owner starts them, waits for all of them, and may ask them to end.
#pragma once

#include <memory>
#include <string>

#include "base/deadline.h"
#include "io/task.h"

namespace prims::io {

/// On the loop's thread only. Whoever makes a scope awaits join() before it goes; a scope that goes with
/// children left asks them to end, but they run on.
class TaskScope {
 public:
  explicit TaskScope(Executor executor);
  TaskScope(TaskScope&&) noexcept;
  ~TaskScope();

  /// Runs up to its first suspension at once. An exception that leaves the Task is logged under `name`.
  void spawn(Task<> task, std::string name);

  /// Waits until every child has ended. Kind::timed_out if some have not by the deadline.
  Task<Result<>> join(Deadline deadline = Deadline::never());

  /// The wait that each child is in fails with Kind::cancelled. A child that starts another wait afterwards
  /// is not disturbed again, so it can clean up.
  void cancel();

  std::size_t size() const;

 private:
  struct State;
  static Task<> run_child(std::shared_ptr<State> state, Task<> task);

  std::shared_ptr<State> state_;  // shared with the children
};

}  // namespace prims::io

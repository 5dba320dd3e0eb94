// Descriptors that are waited for, read and written on the loop: pipes, sockets, terminals, pidfds.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "io/task.h"

namespace prims::io {

/// Owns a descriptor. At most one Task reads and one writes at a time. Failures: Kind::timed_out,
/// Kind::cancelled (the Task was asked to end, or close() was called meanwhile), otherwise what errno says.
class Stream {
 public:
  Stream();
  /// Makes the descriptor non-blocking, which every process that shares its open file description sees.
  explicit Stream(UniqueFd fd);
  /// Leaves the descriptor's flags alone: for readable() and writable() only.
  static Stream only_waited_for(UniqueFd fd);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// At least one byte, or 0 at the end of input. `into` must live until the Task ends.
  Task<Result<std::size_t>> read_some(std::span<char> into, Deadline deadline);

  /// All of `data`, which must live until the Task ends.
  Task<Result<>> write_all(std::string_view data, Deadline deadline);

  Task<Result<>> readable(Deadline deadline);
  Task<Result<>> writable(Deadline deadline);

  /// For system calls of the caller's own (sendmsg, accept4); -1 after close().
  int fd() const;

  /// Idempotent; waits that are under way fail with Kind::cancelled.
  void close();

 private:
  struct State;
  enum class Ready { read, write };
  static Task<Result<>> wait(std::shared_ptr<State> state, Ready what, Deadline deadline);
  static Task<Result<>> take_turn(std::shared_ptr<State> state);
  static Task<Result<std::size_t>> read_from(std::shared_ptr<State> state, std::span<char> into,
                                             Deadline deadline);
  static Task<Result<>> write_to(std::shared_ptr<State> state, std::string_view data, Deadline deadline);

  std::shared_ptr<State> state_;  // shared with Tasks that wait, which may outlive this object
};

}  // namespace prims::io

// What happened to a program in a sandbox. A value, never an exception: every ending is expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/deadline.h"

namespace prims::sandbox {

struct Exited {
  int code = 0;
};
/// Ended by a signal that no limit of ours explains (SIGSEGV, SIGABRT, its own SIGKILL; SIGSYS is a seccomp
/// kill).
struct Signalled {
  int signal = 0;
};
struct TimedOut {
  Milliseconds limit{0};
};
struct OutOfMemory {
  Bytes limit;
  Bytes peak;
};
struct CpuTimeExceeded {
  Milliseconds limit{0};
  Milliseconds used{0};
};
/// The process limit was hit and the program did not end well.
struct ProcessLimit {
  std::uint32_t limit = 0;
  std::uint32_t peak = 0;
  std::optional<int> exit_code;  ///< when the program ended by itself
};
struct DiskLimit {
  Bytes limit;
  Bytes peak;
};
struct OutputLimit {
  Bytes limit;
};
/// Killed because nobody waits for it any more.
struct Cancelled {};
/// The sandbox itself could not be made or broke; `step` names the launcher's step ("clone", "pivot_root",
/// ...).
struct SetupFailed {
  std::string step;
  int error = 0;
};

using Outcome = std::variant<Exited, Signalled, TimedOut, OutOfMemory, CpuTimeExceeded, ProcessLimit,
                             DiskLimit, OutputLimit, Cancelled, SetupFailed>;

struct Usage {
  Milliseconds cpu{0};
  Bytes peak_memory;
  std::uint32_t peak_processes = 0;
  Bytes disk;  ///< below writable attachments, at the end
};

/// How each limit is enforced here, for results and `doctor`: "cgroup1", "cgroup2", "rlimit+watchdog".
struct Enforcement {
  std::string memory;
  std::string processes;
  std::string cpu;
};

}  // namespace prims::sandbox

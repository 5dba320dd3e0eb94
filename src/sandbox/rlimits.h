// Per-process limits as data. The launcher sets them inside the sandbox, after the last user namespace is
// made and before the program starts.
#pragma once

#include <cstdint>
#include <vector>

#include "sandbox/spec.h"

namespace prims::sandbox {

struct Rlimit {
  int resource = 0;  ///< RLIMIT_*
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

/// The launcher and init are not part of a program's own share of Limits::processes.
inline constexpr std::uint32_t kOwnProcesses = 2;

/// Who bounds the memory of all processes together.
enum class MemoryBound {
  group,      ///< a cgroup: rlimits leave address space alone
  processes,  ///< nobody but these rlimits and a watchdog: RLIMIT_DATA tight, RLIMIT_AS loose
};

/// How much of its own one process may map with MemoryBound::processes (RLIMIT_DATA).
Bytes data_limit(Bytes memory);

/// Never above what this process itself may set.
std::vector<Rlimit> make_rlimits(const Limits& limits, MemoryBound bound);

}  // namespace prims::sandbox

#include "sandbox/rlimits.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

namespace prims::sandbox {
namespace {

/// OpenBLAS spins for ever instead of failing where it cannot reserve its buffers.
constexpr Bytes kLeastData = mib(640);

/// Reserved and never touched: thread stacks, allocator arenas, mappings of libraries.
constexpr Bytes kReservations = gib(4);

/// The kernel keeps a core dump from the host's handler only for the value 1 (0 still runs a piped handler).
constexpr std::uint64_t kNoCore = 1;

/// A process that the group's own count refuses leaves evidence, one that RLIMIT_NPROC refuses does not.
constexpr std::uint64_t kBehindTheGroup = 16;

}  // namespace

/// A quarter above the limit, so that the watchdog sees the limit crossed before an allocation fails, and one
/// process cannot run far ahead of it.
Bytes data_limit(Bytes memory) {
  return std::max(kLeastData, Bytes{memory.count + memory.count / 4});
}

std::vector<Rlimit> make_rlimits(const Limits& limits, MemoryBound bound) {
  const std::uint64_t processes =
      std::uint64_t{limits.processes} + kOwnProcesses + (bound == MemoryBound::group ? kBehindTheGroup : 0);
  std::vector<Rlimit> wanted{
      {RLIMIT_NOFILE, limits.open_files, limits.open_files},
      {RLIMIT_NPROC, processes, processes},
      {RLIMIT_FSIZE, limits.file_size.count, limits.file_size.count},
      {RLIMIT_CORE, kNoCore, kNoCore},
      {RLIMIT_MEMLOCK, kib(64).count, kib(64).count},
      {RLIMIT_MSGQUEUE, 0, 0},
      {RLIMIT_SIGPENDING, 256, 256},
      {RLIMIT_STACK, mib(8).count, mib(64).count},
      {RLIMIT_NICE, 0, 0},
      {RLIMIT_RTPRIO, 0, 0},
  };
  if (bound == MemoryBound::processes) {
    const Bytes data = data_limit(limits.memory);
    wanted.push_back({RLIMIT_DATA, data.count, data.count});
    wanted.push_back({RLIMIT_AS, data.count + kReservations.count, data.count + kReservations.count});
  }
  if (limits.cpu_time.count() > 0) {
    // Behind the group's own count of all processes: whole seconds, and one later.
    const auto seconds =
        static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(limits.cpu_time).count());
    wanted.push_back({RLIMIT_CPU, seconds + 1, seconds + 2});
  }
  for (Rlimit& limit : wanted) {
    rlimit now{};
    if (::getrlimit(static_cast<__rlimit_resource>(limit.resource), &now) != 0) continue;
    limit.hard = std::min<std::uint64_t>(limit.hard, now.rlim_max);
    limit.soft = std::min(limit.soft, limit.hard);
  }
  return wanted;
}

}  // namespace prims::sandbox

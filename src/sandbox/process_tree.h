// Processes as /proc shows them: who descends from whom, and what each uses.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"

namespace prims::sandbox {

/// One read of /proc/PID/stat.
struct ProcessSample {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start_time = 0;      ///< with the pid, names the process for as long as the machine runs
  std::uint64_t own_ticks = 0;       ///< CPU time of its threads
  std::uint64_t children_ticks = 0;  ///< CPU time of its ended children, and theirs, that it waited for
  std::uint32_t threads = 0;
  Bytes resident;
};

/// Nothing: the process has ended.
std::optional<ProcessSample> sample_process(pid_t pid);

/// `root` and everything that descends from it now. A process that is made while this reads may be missed.
std::vector<ProcessSample> sample_tree(pid_t root);

/// Memory of one process with shared pages divided among their users. Where the kernel does not tell:
/// nothing.
struct MemoryShare {
  Bytes anonymous;  ///< private memory, swapped or not
  Bytes shared;     ///< shared anonymous memory and mapped files of tmpfs
};
std::optional<MemoryShare> memory_share(pid_t pid);

/// Sockets of all kinds in the network namespace of `pid`, those that are on their way through another one
/// too.
std::uint64_t open_sockets(pid_t pid);

/// Used bytes of the tmpfs mounts that `pid` sees and can write to.
Bytes tmpfs_used(pid_t pid);

}  // namespace prims::sandbox

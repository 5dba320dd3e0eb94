// Which system calls a sandboxed program may make.
//
// The policy is a table (seccomp_table.cpp) of names, actions and conditions on arguments; libseccomp turns
// it into a BPF program. A name that the table does not know is answered with ENOSYS, as an older kernel
// would; a name that is known and refused with EPERM; calls of a foreign ABI kill the process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace prims::sandbox {

/// memfd_create and System V shared memory: memory that no mapping shows and that only a cgroup counts.
enum class MemoryFiles { allowed, refused };

enum class Role {
  guest,
  /// May in addition join the namespaces of the sandboxes that its forks are for.
  template_program,
  /// Inherits the filter of its template program and gets this one on top, which only refuses what that one
  /// allows beyond a guest's. Of two filters the stricter answer holds, so both together are the guest's.
  fork,
  /// Pid 1 of a fork's sandbox: waits, reports, and starts nothing.
  init_of_fork,
};

enum class Architecture { native, x86_64, aarch64 };

/// An array of sock_filter, as bytes: what a launcher hands to seccomp(SECCOMP_SET_MODE_FILTER).
Result<std::vector<std::uint8_t>> compile_seccomp(MemoryFiles memory_files = MemoryFiles::allowed,
                                                  Role role = Role::guest,
                                                  Architecture architecture = Architecture::native);

/// The table as text, one call a line, for people and for the golden file.
std::string describe_seccomp();

/// Names of the table that do not exist on `architecture`, sorted.
std::vector<std::string> unresolved_calls(Architecture architecture);

}  // namespace prims::sandbox

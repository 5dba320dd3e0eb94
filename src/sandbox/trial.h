// Attempts in a child process of their own, so that what they change ends with them.
#pragma once

#include <sys/types.h>

#include <expected>
#include <functional>
#include <string>

namespace prims::sandbox {

/// The step of an attempt that did not work.
struct FailedStep {
  std::string step;
  int error = 0;  ///< errno; 0: the step worked where it must not
};
using Attempt = std::expected<void, FailedStep>;

/// `result` as system calls return it: below 0 is errno.
Attempt expect(const char* step, long result);

/// Runs `body` in a fork of this process and returns what it returns. A body that dies or takes longer than
/// five seconds has failed.
Attempt try_in_child(const std::function<Attempt()>& body);

/// The one user that a sandbox has, inside and outside.
struct SandboxUser {
  uid_t outside = 0;
  gid_t outside_group = 0;
  static constexpr uid_t kInside = 1000;
};

/// Moves the calling process (a child of try_in_child) into a new user namespace with this user mapped, and
/// into the namespaces of `flags` (CLONE_NEW*) as well.
Attempt enter_namespaces(SandboxUser user, int flags);

/// A new mount namespace on top, in which mounts reach nobody else, with an empty tmpfs at /tmp.
Attempt enter_mount_namespace(SandboxUser user, int more_flags = 0);

}  // namespace prims::sandbox

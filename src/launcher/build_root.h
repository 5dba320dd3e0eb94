// The file tree of a sandbox, built in its own mount namespace. Runs in the first process, with capabilities
// there.
#pragma once

#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

/// Detached mounts by the numbers of Spec::trees; -1 where an optional one is missing.
struct Trees {
  int fds[wire::kMaxTrees] = {};
};

/// Builds the root on a new memory file system and makes it the root of this process and its mount namespace.
/// Afterwards nothing of the host's tree is left and everything is read-only but the tmpfs of the Spec.
Failure build_root(const wire::Spec& spec, const Trees& trees);

}  // namespace prims::launcher

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

/// The part of it that the sandboxes of a stage have in common. What each has for itself is missing: memory
/// file systems, terminals, /proc; the one /proc that is there shows the stage's processes, uncovered,
/// because the kernel lets nobody mount another where none is seen whole.
Failure build_stage_root(const wire::Spec& spec, const Trees& trees);

/// What is missing there, in a copy of the stage's mounts.
enum class Proc { of_new_namespaces, of_stage };
Failure complete_root(const wire::Spec& spec, Proc proc);

}  // namespace prims::launcher

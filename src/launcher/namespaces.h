// User namespaces and their id maps, seen from the launcher, outside the sandbox.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

/// What every sandbox has for itself. The cgroup namespace comes later, when the limits are entered.
inline constexpr std::uint64_t kSandboxNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

/// As an ordinary user: a user namespace in which we are still ourselves but hold capabilities, and a copy of
/// the mounts, so that host directories can be taken from there and moved into the sandbox later.
Failure enter_outer_namespace();

/// One id in a user namespace and what it is in the namespace above.
struct Ids {
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
};

/// Maps one uid and one gid in the user namespace of `pid`, and forbids setgroups there.
Failure write_id_maps(pid_t pid, Ids uid, Ids gid);

/// The id of a stage's user namespace that the sandbox in a slot is mapped to.
std::uint32_t slot_id(const wire::Spec& spec, std::uint32_t slot);

/// A stage's own id and those of its slots.
Failure write_stage_maps(pid_t pid, const wire::Spec& spec);

/// A user namespace for id-mapped mounts: files of the owner appear as files of the sandbox's user. It was
/// made by a process that has been killed and is to be reaped, which takes the kernel a millisecond that
/// nobody should wait for.
struct OwnerNamespace {
  int fd = -1;
  pid_t process = -1;
};
Failure make_owner_namespace(std::uint32_t owner_id, wire::Slot user, OwnerNamespace& made);

}  // namespace prims::launcher

// Mounting into a sandbox that is already locked down, from outside.
#pragma once

#include <cstddef>

#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

struct AttachTarget {
  int first_pidfd = -1;
  int owner_namespace = -1;    ///< for id-mapped mounts; -1: files keep their owner
  bool ordinary_user = false;  ///< capabilities come from entering the sandbox's user namespace
};

/// Takes every source first, then mounts all of them. `number` tells which one a failure is about.
Failure attach_all(const AttachTarget& target, wire::Reader& attachments, std::size_t& number);

}  // namespace prims::launcher

// First steps of a process in new namespaces.
#pragma once

#include <cstdint>
#include <string_view>

#include "launcher/failure.h"

namespace prims::launcher {

/// Every process and byte from here on counts for the limits behind these descriptors, which carry the right
/// to enter.
Failure enter_limits(int first_entry, int entries);

/// Until the id maps are written: one byte, or end of file when the one who writes them has died.
Failure wait_at(int barrier);

/// uid and gid `id` of this user namespace, in all their kinds. Capabilities stay.
Failure take_identity(std::uint32_t id);

/// Only after take_identity(): a change of ids forgets it.
Failure die_with_parent();

/// /dev/null of this root as 0, 1, 2.
Failure take_null_descriptors();

/// Blocks every signal; `children` receives a descriptor that is readable when a child has ended.
Failure watch_children(int& children);

/// Once the id maps are written: identity `id`, a session and a cgroup namespace of its own, names, a
/// loopback interface that is up; dies with its parent.
Failure settle_in(std::uint32_t id, std::string_view hostname);

}  // namespace prims::launcher

// Whether cgroup v2 could bound sandboxes here.
#pragma once

#include "sandbox/sandbox.h"

namespace prims::sandbox {

/// Makes and removes a group below this process's own, and sees which controllers it could have.
Finding find_cgroup2();

}  // namespace prims::sandbox

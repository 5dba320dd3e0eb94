// Limits without cgroups: rlimits bound each process, and a background thread adds up what the processes of a
// sandbox use together, about every 50 ms while somebody polls breached(). Between two looks a sandbox can
// run ahead; how far is in docs/limits.md.
#pragma once

#include <memory>

#include "sandbox/limit_backend.h"

namespace prims::sandbox {

/// Never fails: it needs nothing but /proc.
std::unique_ptr<LimitBackend> make_watchdog_backend();

}  // namespace prims::sandbox

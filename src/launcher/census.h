// How many processes and threads a sandbox has, seen from inside.
#pragma once

#include <cstdint>

namespace prims::launcher {

/// Threads of all processes in /proc, those that have ended and wait to be reaped too. 0: /proc is not
/// readable.
std::uint32_t count_threads();

}  // namespace prims::launcher

// Pid 1 of a sandbox: starts the program, reaps, reports how it ended, and ends the sandbox by ending itself.
#pragma once

namespace prims::launcher {

/// Returns the exit status.
int run_init();

}  // namespace prims::launcher

// Pid 1 of a sandbox: starts the program, reaps, reports how it ended, and ends the sandbox by ending itself.
#pragma once

namespace prims::launcher {

/// The Spec is found at kSpecFd. Where that is a stage's, the program joins from outside and is adopted.
/// Returns the exit status.
int run_init();

}  // namespace prims::launcher

// Pid 1 of a sandbox: starts the program, reaps, reports how it ended, and ends the sandbox by ending itself.
#pragma once

#include "launcher/wire.h"

namespace prims::launcher {

/// The role of its own: the Spec is found at kSpecFd. Returns the exit status.
int run_init();

/// Where the program comes from: a child of init, or one that joins from outside and is adopted.
enum class Origin { started, joined };

/// The same from a Spec that is read already.
int serve_as_init(const wire::Spec& spec, Origin origin);

}  // namespace prims::launcher

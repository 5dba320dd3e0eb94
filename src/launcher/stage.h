// The first process of a template's sandbox: starts the template program, and makes sandboxes for its forks.
//
// Whoever forks must be owner of the user namespaces that it sends its forks into, and needs no capability
// for that. So the stage, which has capabilities in its own user namespace and runs none but this code, makes
// each sandbox: a process in new namespaces that becomes its init. The template program, which has none and
// lives under the filter of guests, then sends a fork of itself into it (join.h).
#pragma once

#include "launcher/failure.h"
#include "launcher/first_process.h"

namespace prims::launcher {

/// Serves until the server is gone. Only returns with a failure.
Failure become_stage(const FirstProcess& self);

}  // namespace prims::launcher

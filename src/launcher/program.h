// Starting the program of a sandbox from init, which is locked down already.
#pragma once

#include <sys/types.h>

#include "launcher/channel.h"
#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

/// `request` stands behind the wire::Request of a start message; the descriptors of the message become 0, 1,
/// 2, ... of the program and are closed here. `pid` receives the program's.
Failure start_program(wire::Reader& request, const Message& message, pid_t& pid);

}  // namespace prims::launcher

// Limits by cgroup v1, for a server that runs as root.
//
// Below the server's own cgroup of each controller (or the top of the hierarchy where that does not allow it)
// lies one directory for this process, `prims-PID-TOKEN`, and in it one per sandbox. The server holds a lock
// on its directory; one that nobody holds belonged to a server that died, and the next one to start removes
// it.
#pragma once

#include <memory>

#include "sandbox/limit_backend.h"

namespace prims::sandbox {

/// The error says what stands in the way.
Result<std::unique_ptr<LimitBackend>> make_cgroup1_backend();

}  // namespace prims::sandbox

// The launcher outside the sandbox: makes it, performs attachments, reports its end and dies with the server.
#pragma once

namespace prims::launcher {

/// Returns the exit status.
int run_launcher();

}  // namespace prims::launcher

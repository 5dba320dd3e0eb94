// The Host of this machine.
#pragma once

#include "sandbox/sandbox.h"

namespace prims::sandbox {

/// create() without the trial: for callers that have examined the host already.
Result<std::unique_ptr<Host>> make_host(const HostOptions& options, Tier tier);

}  // namespace prims::sandbox

// The Spec as both roles find it: a memory file that they map read-only.
#pragma once

#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

/// `spec` keeps views into the mapping, which stays.
Failure map_spec(int file, wire::Spec& spec);

}  // namespace prims::launcher

// Why a host refuses namespaces: which setting, whose filter, and what to change.
#pragma once

#include <string>

#include "sandbox/trial.h"

namespace prims::sandbox {

/// What to change so that `failed` may work. Reads the settings that are known to stand in the way of
/// namespaces and names the one that does; where none is found, says what is left to look at.
std::string wall_behind(const FailedStep& failed);

}  // namespace prims::sandbox

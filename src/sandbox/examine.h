// What this host allows, found by doing it in a forked child: never by reading version numbers.
#pragma once

#include <vector>

#include "sandbox/sandbox.h"

namespace prims::sandbox {

/// Every attempt, one finding each, in the order a sandbox is made. Takes tens of milliseconds and forks:
/// call it at start or from `prims doctor`, before threads exist.
std::vector<Finding> examine(const HostOptions& options);

/// The tier that the same attempts support.
Tier detect_tier(const HostOptions& options);

/// The tier that these findings support, and what to change when it is Tier::none (empty otherwise).
Tier tier_of(const std::vector<Finding>& findings);
std::string what_to_change(const std::vector<Finding>& findings);

}  // namespace prims::sandbox

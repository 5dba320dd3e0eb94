// Limits that the kernel keeps by refusing, seen through what Python makes of a refusal.
#pragma once

#include <optional>

#include "python/runner.h"

namespace prims::python {

/// The limit behind an exception that ended the program, where rlimits bound memory and processes: those
/// leave no evidence but the failed call. Nothing where a group counts, or when the program ended in another
/// way.
std::optional<sandbox::Outcome> refused_by_limit(const RunResult& result, const sandbox::Limits& limits,
                                                 const sandbox::Enforcement& enforcement);

}  // namespace prims::python

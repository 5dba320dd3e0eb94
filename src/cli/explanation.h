// Words about a run for the person who started it.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace prims::cli {

/// What the program in the sandbox could not say itself, from the result of its run: why it was ended or
/// never ran, and what to do next.
std::vector<std::string> explanation(const json::Object& result);

}  // namespace prims::cli

// The environment of this process as data.
#pragma once

#include <map>
#include <string>

namespace prims::cli {

/// The first of several entries with one name counts, as for getenv.
std::map<std::string, std::string> environment();

}  // namespace prims::cli

// Reading whole files within a limit.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace prims::cli {

/// `name` "-" is standard input.
Result<std::string> read_file(const std::string& name, Bytes limit);

}  // namespace prims::cli

// Reading whole files and standard input, within a limit.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace prims::cli {

/// `name` "-" is standard input.
Result<std::string> read_file(const std::string& name, Bytes limit);

/// Standard input for the program in the sandbox: nothing when it is a terminal or closed. Says on standard
/// error when it waits, because an inherited pipe may never end.
Result<std::optional<std::string>> read_program_input(Bytes limit);

}  // namespace prims::cli

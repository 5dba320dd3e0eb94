// What --help prints: examples first, then the options; settings come from the one table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prims::cli {

/// Of the whole program.
std::string program_help();

/// Of one command.
std::string command_help(std::string_view command);

std::vector<std::string> command_names();

}  // namespace prims::cli

// What runs inside a sandbox beside the user's program: Python sources without dependencies, compiled into
// this program.
#pragma once

#include <span>
#include <string_view>

namespace prims::guest {

struct File {
  std::string_view name;  ///< "driver.py"
  std::string_view content;
};

/// All files of the driver; they belong into one directory. "driver.py", the first, is the one to start.
std::span<const File> files();

}  // namespace prims::guest

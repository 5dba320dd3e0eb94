// The TOML file of settings, as texts with their lines. What a key means is not decided here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace prims::server {

struct FileValue {
  std::string key;
  std::vector<std::string> texts;  ///< the items of an array, or one scalar
  bool is_array = false;
  int line = 0;
};

/// Every top-level key in the order of the file. Errors name the file and the line.
Result<std::vector<FileValue>> read_settings_file(const std::filesystem::path& file);

}  // namespace prims::server

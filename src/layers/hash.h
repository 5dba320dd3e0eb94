// SHA-256, for names of layers and for checking what was downloaded.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace prims::layers {

std::string sha256_hex(std::string_view data);

/// Of a whole file, read in pieces.
Result<std::string> sha256_of_file(const std::filesystem::path& file);

}  // namespace prims::layers

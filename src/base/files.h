// Files of the state directory.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace prims {

/// Makes `text` the content of `file`, for this user only, by one rename: a reader sees what was there before
/// or all of it, never a part. Does not wait for the disk.
Result<> replace_file(const std::filesystem::path& file, std::string_view text);

}  // namespace prims

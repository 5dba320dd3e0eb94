// The pinned uv (cmake/uv.txt): found, or fetched once and kept in the state directory.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "layers/store.h"

namespace prims::layers {

/// The version of the pinned uv.
std::string_view uv_version();

/// The file name of its wheel for this processor.
std::string_view uv_wheel();

/// tools/uv-VERSION/uv: there already; or unpacked from a wheel beside the program; or from one that the
/// interpreter's pip downloads. The wheel's hash is checked before a byte of it is used. Blocks, also on the
/// network.
Result<std::filesystem::path> ensure_uv(const std::filesystem::path& state, const Interpreter& interpreter,
                                        const std::filesystem::path& program_directory);

/// The same if it is there already.
std::filesystem::path uv_if_there(const std::filesystem::path& state);

}  // namespace prims::layers

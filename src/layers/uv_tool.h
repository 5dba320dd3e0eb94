// The pinned uv (cmake/uv.txt): found, or fetched once and kept in the state directory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "layers/store.h"

namespace prims::layers {

/// The version of the pinned uv.
std::string_view uv_version();

/// The file name of its wheel for this processor.
std::string_view uv_wheel();

struct UvSource {
  std::filesystem::path state;
  Interpreter interpreter;                  ///< its pip downloads the wheel
  std::filesystem::path program_directory;  ///< where a wheel may lie; may be empty
  std::string index_url;                    ///< empty: what pip itself is set to
  std::vector<std::string> extra_index_urls;
};

/// tools/uv-VERSION/uv: there already; or unpacked from a wheel beside the program; or from one that the
/// interpreter's pip downloads. The wheel's hash is checked before a byte of it is used. Errors: exhausted
/// and denied are about the state directory, invalid_input about the wheel, unavailable about the network.
/// `workers` outlives the Task.
io::Task<Result<std::filesystem::path>> ensure_uv(UvSource source, io::Workers* workers);

/// The same if it is there already.
std::filesystem::path uv_if_there(const std::filesystem::path& state);

}  // namespace prims::layers

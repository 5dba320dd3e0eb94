// Keeps what the broker learned between sandboxes and processes: uv with a warm cache asks for a file without
// asking the index first, and a new broker would not know its host.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "egress/broker.h"

namespace prims::layers {

/// Empty when there is no such file or it is damaged.
std::vector<egress::FileHost> read_file_hosts(const std::filesystem::path& file);

/// Replaces the file by one rename.
Result<> write_file_hosts(const std::filesystem::path& file, const std::vector<egress::FileHost>& hosts);

}  // namespace prims::layers

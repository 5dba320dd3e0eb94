// Removes what a guest left behind, whatever it is.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace prims::session {

/// Removes `tree` and everything in it: any depth, unreadable directories, odd names; links are removed,
/// never followed. Blocks for as long as it takes and uses a fixed number of descriptors. Not being there is
/// success.
///
/// The parent must be a directory of ours on the same file system that no guest can write: nested directories
/// are moved up into a fresh directory beside `tree` before they are emptied, so depth costs neither stack,
/// path length nor descriptors.
Result<> remove_tree(const std::filesystem::path& tree);

}  // namespace prims::session

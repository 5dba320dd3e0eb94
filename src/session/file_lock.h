// Locks between processes. The kernel gives one up when its holder dies, however it dies.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::session {

/// Waits for the exclusive lock on `file`, which is created when missing. Closing the descriptor gives it
/// back.
Result<UniqueFd> lock_file(const std::filesystem::path& file);

/// The same without waiting: nothing when somebody else holds it.
Result<std::optional<UniqueFd>> try_lock_file(const std::filesystem::path& file);

}  // namespace prims::session

// Reads from the line pipe which line of the code was running (docs/guest-protocol.md).
#pragma once

#include <optional>
#include <string_view>

namespace prims::python {

/// The line of the innermost frame in `file`; nothing while the dump has no complete line that names it. The
/// text comes from the guest: whatever does not look as expected is skipped.
std::optional<int> running_line(std::string_view dump, std::string_view file);

}  // namespace prims::python

// Inline script metadata: the `# /// script` block of PEP 723 in the code that a caller sends.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace prims::layers {

struct ScriptBlock {
  std::vector<std::string> dependencies;  ///< PEP 508, as written
  std::string requires_python;            ///< "" when not given
};

/// The block of `code`, or nothing when it has none. A block that cannot be read, or a second one, is
/// invalid_input with the line.
Result<std::optional<ScriptBlock>> read_script_block(std::string_view code);

/// Whether a version ("3.11.7") satisfies a version specifier (">=3.11,<3.14"). Unreadable specifiers are
/// invalid_input.
Result<bool> satisfies(std::string_view version, std::string_view specifier);

}  // namespace prims::layers

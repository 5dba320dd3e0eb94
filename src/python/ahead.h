// Which modules a template imports before any program asks for them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace prims::python {

struct Ahead {
  std::vector<std::string> modules;  ///< in the order of their import: what is wanted most comes first
  Bytes memory;                      ///< what a template with them is expected to hold
};

/// For a layer with these packages ("numpy==2.4.6").
Ahead imports_ahead(std::span<const std::string> packages);

}  // namespace prims::python

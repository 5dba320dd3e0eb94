// Which modules a template imports before any program asks for them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace prims::python {

/// Of the templates of one environment. Every module can be imported by the forks of either; those of a light
/// one are smaller, and do not have them ready.
enum class Weight { light, heavy };

/// What serves this program best, in a layer with these packages.
Weight weight_of(std::string_view code, std::span<const std::string> packages);

struct Ahead {
  std::vector<std::string> modules;  ///< in the order of their import: what is wanted most comes first
  Bytes memory;                      ///< what a template with them is expected to hold
};

/// For a layer with these packages ("numpy==2.4.6").
Ahead imports_ahead(std::span<const std::string> packages, Weight weight);

}  // namespace prims::python

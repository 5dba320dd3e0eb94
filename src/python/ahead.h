// Which modules a template imports before any program asks for them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "layers/store.h"

namespace prims::python {

/// Of the templates of one environment. Every module can be imported by the forks of either; those of a light
/// one are smaller, and do not have them ready.
enum class Weight { light, heavy };

/// Keeps what it derives from the packages of a layer.
class Scales {
 public:
  /// What serves this program best.
  Weight weigh(std::string_view code, const layers::Layer& layer);

 private:
  std::map<std::string, std::vector<std::string>> heavy_names_;  ///< by the directory of the layer
};

struct Ahead {
  std::vector<std::string> modules;  ///< in the order of their import: what is wanted most comes first
  Bytes memory;                      ///< what a template with them is expected to hold
};

/// For a layer with these packages ("numpy==2.4.6").
Ahead imports_ahead(std::span<const std::string> packages, Weight weight);

}  // namespace prims::python

#include "python/ahead.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string_view>

#include "python/module_names.h"

namespace prims::python {
namespace {

/// The interpreter with what scripts use of the standard library.
constexpr Bytes kInterpreter = mib(48);

struct Heavy {
  std::string_view distribution;
  std::string_view module;
  Bytes memory;  ///< beside those above it
};

/// Packages that are slow to import and safe to fork: they start no thread and open nothing when imported.
constexpr std::array kHeavy = {
    Heavy{"numpy", "numpy", mib(24)},
    Heavy{"pandas", "pandas", mib(56)},
    Heavy{"matplotlib", "matplotlib.pyplot", mib(40)},
    Heavy{"requests", "requests", mib(12)},
    Heavy{"openpyxl", "openpyxl", mib(14)},
    Heavy{"pillow", "PIL.Image", mib(10)},
    Heavy{"scipy", "scipy.stats", mib(64)},
    Heavy{"scipy", "scipy.optimize", mib(0)},
    Heavy{"scikit-learn", "sklearn", mib(24)},
    Heavy{"scikit-learn", "sklearn.linear_model", mib(40)},
    Heavy{"seaborn", "seaborn", mib(16)},
    Heavy{"statsmodels", "statsmodels.api", mib(48)},
    Heavy{"sympy", "sympy", mib(48)},
    Heavy{"networkx", "networkx", mib(32)},
    Heavy{"plotly", "plotly.graph_objects", mib(32)},
    Heavy{"beautifulsoup4", "bs4", mib(10)},
    Heavy{"lxml", "lxml.etree", mib(10)},
    Heavy{"pyyaml", "yaml", mib(4)},
    Heavy{"pydantic", "pydantic", mib(16)},
    Heavy{"jinja2", "jinja2", mib(6)},
    Heavy{"httpx", "httpx", mib(12)},
    Heavy{"xlsxwriter", "xlsxwriter", mib(6)},
    Heavy{"tabulate", "tabulate", mib(3)},
    Heavy{"python-docx", "docx", mib(12)},
    Heavy{"pypdf", "pypdf", mib(12)},
};

/// "Scikit_Learn==1.5" as "scikit-learn".
std::string distribution_of(std::string_view package) {
  std::string name(package.substr(0, package.find("==")));
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '_' || c == '.' ? '-' : static_cast<char>(std::tolower(c));
  });
  return name;
}

constexpr std::size_t kMostKept = 64;

/// What a program mentions that is better off with imports ahead: a package that imports what was imported
/// ahead is as good a reason as the module itself.
std::vector<std::string> heavy_names(std::span<const std::string> packages) {
  std::vector<std::string> names;
  for (const std::string& module : imports_ahead(packages, Weight::heavy).modules) {
    names.push_back(module.substr(0, module.find('.')));
  }
  if (names.empty()) return names;
  std::ranges::copy(modules_of(packages), std::back_inserter(names));
  std::ranges::sort(names);
  return names;
}

}  // namespace

Weight Scales::weigh(std::string_view code, const layers::Layer& layer) {
  auto known = heavy_names_.find(layer.directory.native());
  if (known == heavy_names_.end()) {
    if (heavy_names_.size() == kMostKept) heavy_names_.clear();
    known = heavy_names_.emplace(layer.directory.native(), heavy_names(layer.packages)).first;
  }
  return mentions_any(code, known->second) ? Weight::heavy : Weight::light;
}

Ahead imports_ahead(std::span<const std::string> packages, Weight weight) {
  std::vector<std::string> distributions;
  for (const std::string& package : packages) distributions.push_back(distribution_of(package));
  Ahead ahead{.modules = {}, .memory = kInterpreter};
  if (weight == Weight::light) return ahead;
  for (const Heavy& heavy : kHeavy) {
    if (std::ranges::find(distributions, heavy.distribution) == distributions.end()) continue;
    ahead.modules.emplace_back(heavy.module);
    ahead.memory.count += heavy.memory.count;
  }
  return ahead;
}

}  // namespace prims::python

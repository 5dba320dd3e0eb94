// What a caller may ask for: PEP 508 requirements on packages of the configured index, and nothing else.
//
// Every accepted requirement is one line of plain ASCII in a normal form, so it cannot smuggle an option, a
// path, a URL or an environment variable into the requirements file that uv reads, and equal wishes have
// equal keys.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "layers/store.h"

namespace prims::layers {

inline constexpr std::size_t kMostRequirements = 100;
inline constexpr std::size_t kLongestRequirement = 500;

struct Requirement {
  std::string name;  ///< normalised as PEP 503 says: lower case, runs of - _ . are one -
  std::string line;  ///< normal form: name[extras]specifiers ; marker
};

struct RequirementSet {
  std::vector<Requirement> wanted;  ///< sorted by line, no duplicates
  std::vector<std::string> notes;   ///< what was left out and why

  bool empty() const { return wanted.empty(); }
  std::vector<std::string> names() const;
  /// One requirement a line.
  std::string text() const;
};

/// PEP 503.
std::string normalised_name(std::string_view name);

/// One requirement, or why it is refused.
std::variant<Requirement, DependencyError> read_requirement(std::string_view given);

/// All of them. Names of standard-library modules are dropped with a note: nothing needs to be installed for
/// them, and what an index has under such a name is not what was meant.
std::variant<RequirementSet, DependencyError> read_requirements(const std::vector<std::string>& given,
                                                                const Interpreter& interpreter);

}  // namespace prims::layers

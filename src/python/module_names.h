// Does a program need certain packages? Looked up in its text, so that one that imports none of them never
// waits for them, nor carries them along.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prims::python {

/// Top-level module names that a set of requirements makes importable: of the well-known base packages with
/// what they bring along, otherwise the distribution's own name with '-' and '.' as '_'.
std::vector<std::string> modules_of(std::span<const std::string> requirements);

/// Whether one of the names stands in `code` as a whole word, wherever: an import inside a string counts, so
/// a program is never taken for simpler than it is.
bool mentions_any(std::string_view code, std::span<const std::string> modules);

}  // namespace prims::python

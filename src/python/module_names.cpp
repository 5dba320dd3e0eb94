#include "python/module_names.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace prims::python {
namespace {

const std::map<std::string, std::vector<std::string>, std::less<>>& brought_along() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> kTable = {
      {"pandas", {"numpy", "dateutil", "pytz", "tzdata", "six"}},
      {"openpyxl", {"et_xmlfile"}},
      {"requests", {"urllib3", "certifi", "idna", "charset_normalizer"}},
      {"matplotlib",
       {"numpy", "pylab", "mpl_toolkits", "contourpy", "cycler", "fontTools", "kiwisolver", "packaging",
        "PIL", "pyparsing", "dateutil", "six"}},
  };
  return kTable;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

}  // namespace

std::vector<std::string> modules_of(std::span<const std::string> requirements) {
  std::set<std::string> names;
  for (const std::string& requirement : requirements) {
    const auto end =
        std::ranges::find_if(requirement, [](char c) { return !is_word(c) && c != '-' && c != '.'; });
    std::string name(requirement.begin(), end);
    if (const auto found = brought_along().find(name); found != brought_along().end()) {
      names.insert(found->second.begin(), found->second.end());
    }
    std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
    if (!name.empty()) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

bool mentions_any(std::string_view code, std::span<const std::string> modules) {
  for (std::size_t i = 0; i < code.size();) {
    if (!is_word(code[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < code.size() && is_word(code[end])) ++end;
    if (std::ranges::binary_search(modules, code.substr(i, end - i))) return true;
    i = end;
  }
  return false;
}

}  // namespace prims::python

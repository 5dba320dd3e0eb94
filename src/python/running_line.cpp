#include "python/running_line.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace prims::python {

std::optional<int> running_line(std::string_view dump, std::string_view file) {
  const std::string start = fmt::format("  File \"{}\", line ", file);
  for (std::size_t end = dump.find('\n'); end != std::string_view::npos; end = dump.find('\n')) {
    const std::string_view line = dump.substr(0, end);
    dump.remove_prefix(end + 1);
    if (!line.starts_with(start)) continue;
    const std::string_view digits = line.substr(start.size());
    int number = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (read.ec == std::errc() && number > 0) return number;
  }
  return std::nullopt;
}

}  // namespace prims::python

#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <limits>

namespace prims {

std::string to_string(Bytes size) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(size.count);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  return whole ? fmt::format("{:.0f} {}", value, kUnits[unit])
               : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Result<Bytes> parse_bytes(std::string_view text) {
  const auto bad = [&] {
    return fail(Kind::invalid_input,
                fmt::format("'{}' is not a size; write for example 512MiB, 2GiB or 65536", text));
  };
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return bad();
  std::string unit;
  for (const char* p = rest; p != end; ++p) {
    if (*p != ' ') unit.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(*p))));
  }
  unsigned shift = 0;
  if (!unit.empty() && unit != "b") {
    const auto power = std::string_view("kmgt").find(unit[0]);
    const std::string_view tail = std::string_view(unit).substr(1);
    if (power == std::string_view::npos || !(tail.empty() || tail == "b" || tail == "ib")) return bad();
    shift = static_cast<unsigned>(power + 1) * 10;
  }
  if (number > (std::numeric_limits<std::uint64_t>::max() >> shift)) return bad();
  return Bytes{number << shift};
}

}  // namespace prims

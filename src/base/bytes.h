// Sizes with their unit, so that no limit is ever a bare number.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace prims {

struct Bytes {
  std::uint64_t count = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
};

constexpr Bytes kib(std::uint64_t n) {
  return Bytes{n << 10};
}
constexpr Bytes mib(std::uint64_t n) {
  return Bytes{n << 20};
}
constexpr Bytes gib(std::uint64_t n) {
  return Bytes{n << 30};
}

/// "512 MiB", "1.5 GiB", "17 B".
std::string to_string(Bytes size);

/// Reads "64KiB", "2 GiB", "512M" (binary multiples, B optional, case ignored) and plain byte counts.
Result<Bytes> parse_bytes(std::string_view text);

}  // namespace prims

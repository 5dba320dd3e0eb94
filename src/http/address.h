// Network addresses as plain bytes, for those who decide which may be dialled.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace prims::http {

struct Address {
  enum class Family { v4, v6 };

  Family family = Family::v4;
  std::array<std::uint8_t, 16> bytes{};  ///< network order; the first four for v4
  std::uint16_t port = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

/// Without the port: "127.0.0.1", "::1".
std::string to_string(const Address& address);

}  // namespace prims::http

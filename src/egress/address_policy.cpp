#include "egress/address_policy.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace prims::egress {
namespace {

using Family = http::Address::Family;

struct Range {
  const char* network;
  unsigned prefix;
  Scope scope;
};

// The first match decides. IANA special-purpose registries (RFC 6890 and successors), and the fixed addresses
// at which clouds serve credentials.
constexpr Range kV4[] = {
    {"100.100.100.200", 32, Scope::closed},  // metadata
    {"168.63.129.16", 32, Scope::closed},    // metadata
    {"192.0.0.192", 32, Scope::closed},      // metadata
    {"0.0.0.0", 8, Scope::closed},          {"127.0.0.0", 8, Scope::closed},
    {"169.254.0.0", 16, Scope::closed},  // link-local, metadata among it
    {"224.0.0.0", 4, Scope::closed},        {"255.255.255.255", 32, Scope::closed},
    {"10.0.0.0", 8, Scope::internal},       {"100.64.0.0", 10, Scope::internal},
    {"172.16.0.0", 12, Scope::internal},    {"192.0.0.0", 24, Scope::internal},
    {"192.0.2.0", 24, Scope::internal},     {"192.88.99.0", 24, Scope::closed},  // 6to4 relay
    {"192.168.0.0", 16, Scope::internal},   {"198.18.0.0", 15, Scope::internal},
    {"198.51.100.0", 24, Scope::internal},  {"203.0.113.0", 24, Scope::internal},
    {"240.0.0.0", 4, Scope::internal},      {"0.0.0.0", 0, Scope::global},
};

constexpr Range kV6[] = {
    {"fd00:ec2::254", 128, Scope::closed},  // metadata
    {"fd20:ce::254", 128, Scope::closed},   // metadata
    {"fc00::", 7, Scope::internal},
    {"2001:db8::", 32, Scope::internal},
    {"3fff::", 20, Scope::internal},
    {"2001::", 23, Scope::closed},  // Teredo and other IETF protocols
    {"2002::", 16, Scope::closed},  // 6to4: an IPv4 address inside
    {"2000::", 3, Scope::global},
    {"::", 0, Scope::closed},  // loopback, link-local, site-local, multicast, mapped, translated, unassigned
};

bool in_range(std::span<const std::uint8_t> address, std::span<const std::uint8_t> network, unsigned prefix) {
  const unsigned whole = prefix / 8;
  if (!std::ranges::equal(address.first(whole), network.first(whole))) return false;
  if (prefix % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff << (8 - prefix % 8));
  return (address[whole] & mask) == (network[whole] & mask);
}

Scope find_scope(const http::Address& address, std::span<const Range> ranges) {
  const bool v4 = address.family == Family::v4;
  const std::size_t length = v4 ? 4 : 16;
  for (const Range& range : ranges) {
    std::uint8_t network[16] = {};
    ::inet_pton(v4 ? AF_INET : AF_INET6, range.network, network);
    if (in_range(std::span(address.bytes).first(length), std::span(network).first(length), range.prefix)) {
      return range.scope;
    }
  }
  return Scope::closed;
}

}  // namespace

Scope scope_of(const http::Address& address) {
  return address.family == Family::v4 ? find_scope(address, kV4) : find_scope(address, kV6);
}

std::optional<http::Address> parse_address(const std::string& text, std::uint16_t port) {
  http::Address address;
  address.port = port;
  if (::inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) return address;
  address.family = Family::v6;
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

Result<> allow_file_host(const http::Address& address, const std::optional<http::Address>& index) {
  const Scope scope = scope_of(address);
  if (scope == Scope::global) return {};
  const bool same_site = index && scope == Scope::internal && scope_of(*index) == Scope::internal;
  if (same_site || index == address) return {};
  return fail(Kind::denied, fmt::format("a package file's host resolves to {}, which is not a public address",
                                        http::to_string(address)));
}

}  // namespace prims::egress

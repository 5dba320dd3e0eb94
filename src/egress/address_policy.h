// Which addresses may be dialled. Decided on the address itself, after name resolution.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "http/address.h"

namespace prims::egress {

enum class Scope {
  global,    ///< public unicast
  internal,  ///< private, shared and other special-purpose ranges that a site may use for its own services
  closed,    ///< never a package host: loopback, link-local, metadata services, multicast, IPv4 inside IPv6,
             ///< the rest
};

Scope scope_of(const http::Address& address);

std::optional<http::Address> parse_address(const std::string& text, std::uint16_t port);

/// Whether a file host that an index named may be dialled at `address`. `index` is the address that the index
/// itself was reached at: an index inside a site may name hosts inside that site, a public one may not. The
/// index's very own address and port are always fine.
Result<> allow_file_host(const http::Address& address, const std::optional<http::Address>& index);

}  // namespace prims::egress

// Absolute http and https URLs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace prims::http {

struct Url {
  std::string scheme;      ///< "http" or "https"
  std::string user_info;   ///< as written, still percent-encoded; empty when there is none
  std::string host;        ///< lower case; IPv6 without brackets
  std::uint16_t port = 0;  ///< always set: 80 and 443 when not written
  std::string target;      ///< path and query, at least "/"; the fragment is dropped

  /// "https://host:port", the key of what may be shared between requests.
  std::string origin() const;
  /// For a Host header: the port only when it is not the scheme's own.
  std::string authority() const;
  /// origin() and target, without user_info.
  std::string text() const;
};

/// Kind::invalid_input unless it is an absolute http or https URL with a host.
Result<Url> parse_url(std::string_view text);

/// A reference as it stands in a document or a Location header, relative to where that was found.
Result<Url> resolve(const Url& base, std::string_view reference);

}  // namespace prims::http

// Who may reach an HTTP endpoint from a browser: the Host names we answer to and the Origins we accept. Both
// stop a web page that was made to point at us (DNS rebinding); neither is authentication.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prims::mcp {

struct OriginRules {
  std::vector<std::string> hosts;    ///< further Host names, without a port, lower case; "*" for any
  std::vector<std::string> origins;  ///< further Origins, whole ("https://app.example"), lower case
};

/// `host` is the Host header: localhost, 127.0.0.1, [::1] or one of the rules, with any port.
bool host_allowed(std::string_view host, const OriginRules& rules);

/// `origin` is the Origin header: http or https on a localhost name with any port, or one of the rules.
/// "null" never.
bool origin_allowed(std::string_view origin, const OriginRules& rules);

}  // namespace prims::mcp

// The headers of one HTTP request, as far as this folder needs to know of HTTP.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "mcp/rpc_error.h"

namespace prims::mcp {

class Headers {
 public:
  virtual ~Headers() = default;
  /// Every value of a header, whose name is compared without case; without surrounding blanks.
  virtual std::vector<std::string_view> all(std::string_view name) const = 0;
};

/// The value of a header that may occur once. Twice is refused: two readers could take two different ones.
std::expected<std::optional<std::string_view>, Refusal> single(const Headers& headers, std::string_view name);

}  // namespace prims::mcp

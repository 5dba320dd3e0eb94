// The id of a JSON-RPC request, and the token of its progress: a string or an integer, and which of the two
// is part of it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "json/json.h"

namespace prims::mcp {

/// 1 and "1" are different ids. null, fractions, integers beyond 64 bits and strings over 1 KiB are none.
class RequestId {
 public:
  explicit RequestId(std::int64_t number) : value_(number) {}
  explicit RequestId(std::string text) : value_(std::move(text)) {}

  static std::optional<RequestId> from(const json::Value& value);

  json::Value value() const;
  /// As JSON, with its type: 7 or "7".
  std::string text() const { return json::write(value()); }

  auto operator<=>(const RequestId&) const = default;

 private:
  std::variant<std::int64_t, std::string> value_;
};

using ProgressToken = RequestId;

}  // namespace prims::mcp

#include "mcp/request_id.h"

namespace prims::mcp {
namespace {

constexpr std::size_t kLongestId = 1024;

}  // namespace

std::optional<RequestId> RequestId::from(const json::Value& value) {
  if (value.is_int64()) return RequestId(value.get_int64());
  if (value.is_string() && value.get_string().size() <= kLongestId)
    return RequestId(json::text(value.get_string()));
  return std::nullopt;
}

json::Value RequestId::value() const {
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return json::Value(*number);
  return json::Value(std::get<std::string>(value_));
}

}  // namespace prims::mcp

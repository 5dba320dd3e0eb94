// One JSON-RPC message, read strictly.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "json/json.h"
#include "mcp/request_id.h"
#include "mcp/rpc_error.h"

namespace prims::mcp {

struct Message {
  enum class Kind { request, notification, response };

  Kind kind = Kind::notification;
  std::optional<RequestId> id;  ///< present for requests and responses
  std::string method;           ///< empty for responses
  json::Object params;          ///< empty when absent
  json::Object body;            ///< of a response: the whole object, with `result` or `error`
};

/// A message that cannot be acted on. `id` is known only where the message has a good one; it is never made
/// up.
struct Unreadable {
  std::optional<RequestId> id;
  RpcError error;
};

/// Strict JSON, nothing about its shape yet; the error is -32700.
std::expected<json::Value, RpcError> read_json(std::string_view text);

std::expected<Message, Unreadable> read_message(json::Value value);

}  // namespace prims::mcp

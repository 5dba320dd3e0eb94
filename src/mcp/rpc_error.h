// Errors of the protocol itself. What a tool has to say about its arguments is a tool result, never one of
// these.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "json/json.h"

namespace prims::mcp {

/// The codes this program sends and understands. Nothing else is ever sent.
enum class RpcCode : int {
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  session_not_found = -32001,             ///< legacy only, together with HTTP 404
  header_mismatch = -32020,               ///< modern
  missing_client_capability = -32021,     ///< modern
  unsupported_protocol_version = -32022,  ///< modern
};

struct RpcError {
  RpcCode code = RpcCode::internal_error;
  std::string message;
  std::optional<json::Object> data;
};

/// An error and the HTTP status that goes with it (stdio has no use for the status).
struct Refusal {
  RpcError error;
  unsigned status = 400;
};

inline Refusal refuse(RpcCode code, std::string message, unsigned status = 400) {
  return Refusal{RpcError{code, std::move(message), std::nullopt}, status};
}

}  // namespace prims::mcp

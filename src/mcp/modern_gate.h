// The header checks of a modern HTTP request: what a proxy may have routed by must be what the body says.
#pragma once

#include <optional>

#include "mcp/headers.h"
#include "mcp/message.h"
#include "mcp/protocol.h"

namespace prims::mcp {

/// MCP-Protocol-Version against the version that _meta names.
std::optional<Refusal> check_version_header(const Headers& headers, const Message& message);

/// Mcp-Method, and Mcp-Name where the method has a name.
std::optional<Refusal> check_method_headers(const Headers& headers, const Message& message);

/// Mcp-Param-* against the arguments that the tool's schema mirrors.
std::optional<Refusal> check_parameter_headers(const Headers& headers, const json::Object& input_schema,
                                               const json::Object& arguments);

}  // namespace prims::mcp

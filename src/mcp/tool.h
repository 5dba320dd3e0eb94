// Tools as the protocol core sees them: definitions that are listed, calls that arrive, results that go back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/json.h"

namespace prims::mcp {

/// Which family of protocol revisions one request belongs to.
enum class Era {
  legacy,  ///< 2024-11-05 to 2025-11-25: initialize, sessions
  modern,  ///< 2026-07-28: stateless
};

/// Who asks. Anonymous until authentication exists; travels with every request.
struct Principal {
  std::string name = "anonymous";
};

/// Listed in the order of registration, byte for byte the same every time.
struct ToolDefinition {
  std::string name;  ///< [A-Za-z0-9_-]{1,64}
  std::string title;
  std::string description;
  json::Object input_schema;
  json::Object output_schema;
  json::Object annotations;  ///< readOnlyHint, destructiveHint, ...
  json::Object meta;         ///< becomes _meta; empty: left out
};

struct CallContext {
  Era era = Era::legacy;
  std::string protocol_version;
  Principal principal;
  std::string client_name;                    ///< clientInfo.name, empty when unknown
  std::optional<std::string> legacy_session;  ///< Mcp-Session-Id, or a name for the stdio connection
  std::optional<std::string> traceparent;     ///< W3C trace context of _meta
  bool wants_progress = false;                ///< a progress token came with the call
};

struct ToolCall {
  std::string name;
  json::Object arguments;
  CallContext context;
};

struct ToolResult {
  json::Object structured;  ///< conforms to the output schema, also when is_error
  /// Content blocks after the first one, which is `structured` as JSON text.
  std::vector<json::Object> extra_content;
  bool is_error = false;
};

}  // namespace prims::mcp

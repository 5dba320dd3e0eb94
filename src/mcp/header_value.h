// Values in Mcp-* headers: as they are where that is safe, else as =?base64?...?= (MCP 2026-07-28, streamable
// HTTP, "Value Encoding"), and the arguments that a tool's schema mirrors into Mcp-Param-* headers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace prims::mcp {

std::string encode_header_value(std::string_view text);

/// nullopt: the value has characters that no header may have, or claims base64 and is none.
std::optional<std::string> decode_header_value(std::string_view value);

/// A parameter that the schema annotates with x-mcp-header.
struct MirroredParameter {
  std::string header;             ///< without the Mcp-Param- prefix
  std::vector<std::string> path;  ///< the property names that lead to it
};

/// All of `schema`, in its order. Only `properties` are followed, as the specification has it.
std::vector<MirroredParameter> mirrored_parameters(const json::Object& schema);

/// Why a client must not offer the tool over HTTP: an annotation that is no header name, occurs twice (case
/// ignored), or sits on something other than a string, an integer or a boolean.
std::optional<std::string> mirror_fault(const json::Object& schema);

/// The header text of the argument at `path`. nullopt: absent, null, or nothing that a header can say (an
/// object, an array).
std::optional<std::string> mirrored_value(const json::Object& arguments,
                                          const std::vector<std::string>& path);

}  // namespace prims::mcp

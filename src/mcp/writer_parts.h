// What both eras' writers are made of. For writer files only.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "mcp/writer.h"

namespace prims::mcp::parts {

/// A response around the text of a result object.
std::string response(const RequestId& id, std::string_view result);

/// `"content":[...],"structuredContent":{...},"isError":...` as the version knows them.
std::string tool_result_members(const ToolResult& result, std::string_view version);

/// The text of a `tools` array as the version knows it.
std::string tool_array(std::span<const ToolDefinition> tools, std::string_view version);

}  // namespace prims::mcp::parts

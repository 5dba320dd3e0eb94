// What a transport needs from the program above it: tools to list and to call.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/cancellation.h"
#include "io/task.h"
#include "mcp/tool.h"

namespace prims::transport {

/// Where a running call says that it goes on. Coalesced to at most five notifications a second, sent only
/// when the client gave a progress token; the transport numbers them. Nothing is sent after the result.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  /// `text` is appended to what has not been sent yet (a chunk of output, or a sentence). Valid UTF-8.
  virtual void report(std::string text) = 0;
};

class ToolHost {
 public:
  virtual ~ToolHost() = default;

  virtual std::span<const mcp::ToolDefinition> tools() const = 0;

  /// Runs a tool that tools() lists. Never throws; a cancelled call still returns (its result is dropped).
  virtual io::Task<mcp::ToolResult> call(mcp::ToolCall call, std::shared_ptr<ProgressSink> progress,
                                         std::shared_ptr<io::Cancellation> cancellation) = 0;
};

}  // namespace prims::transport

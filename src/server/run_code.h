// The tool run_code, and the list of tools that the server offers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "mcp/writer.h"
#include "server/engine.h"
#include "server/settings.h"
#include "transport/tool_host.h"

namespace prims::server {

class Tools : public transport::ToolHost {
 public:
  Tools(const Settings& settings, Engine& engine);

  std::span<const mcp::ToolDefinition> tools() const override { return definitions_; }

  io::Task<mcp::ToolResult> call(mcp::ToolCall call, std::shared_ptr<transport::ProgressSink> progress,
                                 std::shared_ptr<io::Cancellation> cancellation) override;

 private:
  io::Task<mcp::ToolResult> run_code(json::Object arguments, std::string caller,
                                     std::shared_ptr<transport::ProgressSink> progress,
                                     std::shared_ptr<io::Cancellation> cancellation);

  const Settings& settings_;
  Engine& engine_;
  std::vector<mcp::ToolDefinition> definitions_;
};

/// Who this server says it is, and what a client tells its model about it (everything that matters in the
/// first 2 KB).
mcp::ServerInfo server_info(const Settings& settings);

}  // namespace prims::server

// The tool run_code, and the list of tools that the server offers.
#pragma once

#include <memory>
#include <span>
#include <vector>

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
  io::Task<mcp::ToolResult> run_code(json::Object arguments, std::shared_ptr<transport::ProgressSink> progress,
                                     std::shared_ptr<io::Cancellation> cancellation);

  const Settings& settings_;
  Engine& engine_;
  std::vector<mcp::ToolDefinition> definitions_;
};

/// What a client tells its model about this server; everything that matters is in the first 2 KB.
std::string instructions(const Settings& settings);

}  // namespace prims::server

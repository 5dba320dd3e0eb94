// MCP over standard input and output. The real standard output is held privately and carries messages only;
// whatever else this process or a child of it writes to descriptor 1 goes to standard error.
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "io/scope.h"
#include "io/stream.h"
#include "mcp/stdio_endpoint.h"
#include "transport/lines.h"
#include "transport/running_call.h"
#include "transport/tool_host.h"

namespace prims::transport {

struct StandardStreams {
  UniqueFd in;
  UniqueFd out;
};

/// Takes descriptors 0 and 1 away from the process: 0 becomes /dev/null, 1 becomes standard error.
Result<StandardStreams> claim_standard_streams();

struct StdioOptions {
  Bytes line_limit = mib(16);
  Milliseconds grace{
      3000};  ///< for runs to end, and for what is left to be written, after the input has ended
  mcp::InFlight::Limits calls;
};

class StdioServer {
 public:
  /// `host` must outlive the server.
  StdioServer(const io::Executor& executor, ToolHost& host, mcp::ServerInfo info, StandardStreams streams,
              StdioOptions options);

  /// Serves until the input ends, the output is gone, or stop(). Every run has been cancelled by then.
  io::Task<> run();

  /// As if the input had ended.
  void stop();

 private:
  class ToOutput;
  class Batch;
  io::Task<> write();
  io::Task<> react(mcp::StdioReaction reaction);
  void start(std::vector<mcp::StartedCall> calls, const std::shared_ptr<Outlet>& outlet);

  ToolHost& host_;
  StdioOptions options_;
  mcp::ServerCore core_;
  mcp::StdioEndpoint endpoint_;
  io::Stream in_;
  io::Stream out_;
  LineReader reader_;
  LineWriter writer_;
  io::TaskScope calls_;
  io::TaskScope writing_;
};

}  // namespace prims::transport

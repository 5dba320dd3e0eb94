// One tools/call on its way: runs the tool, paces its progress, and says exactly one last thing, or nothing
// once cancelled.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/event.h"
#include "io/scope.h"
#include "mcp/progress.h"
#include "mcp/server_core.h"
#include "transport/tool_host.h"

namespace prims::transport {

/// Where the messages of calls go. On the loop.
class Outlet {
 public:
  virtual ~Outlet() = default;
  /// A progress notification. May be dropped when the reader is slow.
  virtual void progress(std::string message) = 0;
  /// Once per call, last: its response, or nothing when it was cancelled.
  virtual void done(std::optional<std::string> response) = 0;
};

class RunningCall final : public ProgressSink, public std::enable_shared_from_this<RunningCall> {
 public:
  /// The call lives in `scope` until the tool returns, cancelled or not. `host` must outlive the scope.
  static std::shared_ptr<RunningCall> start(io::TaskScope& scope, ToolHost& host, mcp::StartedCall started,
                                            std::shared_ptr<Outlet> outlet);

  /// Idempotent. Nothing is said for this call from here on.
  void cancel();

  void report(std::string text) override;

 private:
  RunningCall(mcp::StartedCall started, std::shared_ptr<Outlet> outlet);

  static io::Task<> run(std::shared_ptr<RunningCall> self, ToolHost* host);
  static io::Task<> pace(std::shared_ptr<RunningCall> self);
  void say(const std::optional<mcp::ProgressUpdate>& update);
  void end(std::optional<std::string> response);

  mcp::StartedCall started_;
  std::shared_ptr<Outlet>
      outlet_;  // shared with the other calls of a batch; empty once the last thing was said
  std::shared_ptr<io::Cancellation> cancellation_;
  mcp::ProgressMeter meter_;
  io::Event changed_;
};

}  // namespace prims::transport

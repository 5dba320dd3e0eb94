// MCP over the standard streams of a child.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "io/scope.h"
#include "transport/lines.h"
#include "upstream/channel.h"
#include "upstream/child_process.h"

namespace prims::upstream {

class StdioChannel final : public Channel, public std::enable_shared_from_this<StdioChannel> {
 public:
  static Result<std::shared_ptr<StdioChannel>> open(const io::Executor& executor, const Command& command);

  io::Task<Result<Answer>> request(Request request) override;
  io::Task<Result<>> notify(mcp::Outgoing message, mcp::Dialect dialect) override;
  bool broken() const override { return ended_; }
  io::Task<> close() override;
  void abandon() override;

 private:
  explicit StdioChannel(std::unique_ptr<ChildProcess> child);
  static io::Task<Result<Answer>> run_request(std::shared_ptr<StdioChannel> self, Request request);
  static io::Task<> read(std::shared_ptr<StdioChannel> self);
  static io::Task<> read_errors(std::shared_ptr<StdioChannel> self);
  static io::Task<> write(std::shared_ptr<StdioChannel> self);
  void take(std::string_view line);
  void end();
  std::string why_ended() const;

  std::unique_ptr<ChildProcess> child_;
  transport::LineReader reader_;
  transport::LineWriter writer_;
  std::map<mcp::RequestId, std::shared_ptr<Pending>> pending_;
  std::string last_errors_;  ///< the end of what the child wrote to standard error
  io::Event errors_read_;
  bool ended_ = false;
};

}  // namespace prims::upstream

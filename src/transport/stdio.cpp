#include "transport/stdio.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace prims::transport {

Result<StandardStreams> claim_standard_streams() {
  StandardStreams streams;
  streams.in = UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!streams.in) return fail_errno("keep standard input");
  streams.out = UniqueFd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!streams.out) return fail_errno("keep standard output");
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) return fail_errno("open /dev/null");
  if (::dup2(nothing.get(), STDIN_FILENO) < 0) return fail_errno("replace standard input");
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return fail_errno("replace standard output");
  return streams;
}

/// The outlet of single calls.
class StdioServer::ToOutput final : public Outlet {
 public:
  explicit ToOutput(LineWriter& writer) : writer_(writer) {}
  void progress(std::string message) override { writer_.offer(std::move(message)); }
  void done(std::optional<std::string> response) override {
    if (response) writer_.push(*std::move(response));
  }

 private:
  LineWriter& writer_;
};

/// The outlet of a batch, whose responses go out together in one array.
class StdioServer::Batch final : public Outlet {
 public:
  Batch(LineWriter& writer, std::vector<std::string> ready, std::size_t calls)
      : writer_(writer), responses_(std::move(ready)), open_calls_(calls) {}

  void progress(std::string message) override { writer_.offer(std::move(message)); }
  void done(std::optional<std::string> response) override {
    if (response) responses_.push_back(*std::move(response));
    if (--open_calls_ == 0 && !responses_.empty())
      writer_.push(fmt::format("[{}]", fmt::join(responses_, ",")));
  }

 private:
  LineWriter& writer_;
  std::vector<std::string> responses_;
  std::size_t open_calls_;
};

StdioServer::StdioServer(const io::Executor& executor, ToolHost& host, mcp::ServerInfo info,
                         StandardStreams streams, StdioOptions options)
    : host_(host),
      options_(options),
      core_(std::move(info), host.tools(), options.calls),
      endpoint_(core_),
      in_(std::move(streams.in)),
      out_(std::move(streams.out)),
      reader_(in_, options.line_limit),
      writer_(out_),
      calls_(executor),
      writing_(executor) {}

void StdioServer::stop() {
  in_.close();
}

io::Task<> StdioServer::write() {
  auto written = co_await writer_.run();
  if (written) co_return;
  log::info("standard output is gone: {}", written.error().message);
  writer_.close();
  stop();
}

void StdioServer::start(std::vector<mcp::StartedCall> calls, const std::shared_ptr<Outlet>& outlet) {
  for (mcp::StartedCall& call : calls) RunningCall::start(calls_, host_, std::move(call), outlet);
}

io::Task<> StdioServer::react(mcp::StdioReaction reaction) {
  if (reaction.shape == mcp::StdioReaction::Shape::single) {
    for (std::string& message : reaction.ready) {
      [[maybe_unused]] auto sent = co_await writer_.send(std::move(message));
    }
    start(std::move(reaction.calls), std::make_shared<ToOutput>(writer_));
  } else if (!reaction.calls.empty()) {
    const std::size_t count = reaction.calls.size();
    start(std::move(reaction.calls), std::make_shared<Batch>(writer_, std::move(reaction.ready), count));
  } else if (!reaction.ready.empty()) {
    std::string array = fmt::format("[{}]", fmt::join(reaction.ready, ","));
    [[maybe_unused]] auto sent = co_await writer_.send(std::move(array));
  }
}

io::Task<> StdioServer::run() {
  writing_.spawn(write(), "standard output");
  for (;;) {
    auto next = co_await reader_.next();
    if (!next || !next->has_value()) break;
    LineReader::Line line = *std::move(*next);
    mcp::StdioReaction reaction;
    if (line.kind == LineReader::Line::Kind::too_long) {
      reaction.ready.push_back(mcp::StdioEndpoint::too_long(options_.line_limit.count));
    } else {
      reaction = endpoint_.line(line.text, mcp::Principal());
    }
    co_await react(std::move(reaction));
  }
  core_.in_flight().cancel_all();
  auto ended = co_await calls_.join(Deadline::after(options_.grace));
  if (!ended) log::warning("{} runs did not end in time", calls_.size());
  writer_.close();
  auto flushed = co_await writing_.join(Deadline::after(options_.grace));
  if (!flushed) writing_.cancel();
}

}  // namespace prims::transport

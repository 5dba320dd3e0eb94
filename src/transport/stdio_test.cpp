// Standard input and output over real pipes, with a host that does what the test says and when.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include "mcp/schema_check.h"
#include "transport/stdio.h"
#include "transport/test_support.h"

namespace prims::transport {
namespace {

using mcp::testing::expect_valid;
using testing::FakeHost;
using testing::RawPeer;
using testing::soon;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  std::array<int, 2> fds{};
  EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

io::Task<> serve(StdioServer* server, io::Event ended) {
  co_await server->run();
  ended.set();
}

class StdioTest : public ::testing::Test {
 protected:
  StdioTest() {
    Pipe in = make_pipe();
    Pipe out = make_pipe();
    to_ = std::make_unique<RawPeer>(std::move(in.write));
    from_ = std::make_unique<RawPeer>(std::move(out.read));
    StdioOptions options;
    options.line_limit = kib(64);
    StandardStreams streams{std::move(in.read), std::move(out.write)};
    server_ = std::make_unique<StdioServer>(loop_.executor(), host_, mcp::ServerInfo{"1.2.3", ""},
                                            std::move(streams), options);
    loop_.spawn(serve(server_.get(), ended_), "server");
  }

  ~StdioTest() override { loop_.run_until_done(shut_down()); }

  io::Task<> shut_down() {
    to_->close();
    auto ended = co_await ended_.wait(soon());
    EXPECT_TRUE(ended.has_value());
  }

  io::Task<> send(std::string line) { co_await to_->write(line + "\n"); }

  io::Task<std::string> receive() {
    std::string line = co_await from_->read_until("\n");
    line.pop_back();
    co_return line;
  }

  io::Task<> initialize() {
    co_await send(
        R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}})");
    const std::string answer = co_await receive();
    expect_valid("2025-11-25", "initialize", answer);
  }

  static std::string call(std::string_view id, std::string_view tool, std::string_view more = "") {
    return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"{}"{}}}}})", id,
                       tool, more);
  }
  static std::string modern_call(std::string_view id, std::string_view tool) {
    return call(
        id, tool,
        R"(,"_meta":{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})");
  }
  static std::string cancel(std::string_view id) {
    return fmt::format(
        R"({{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}})", id);
  }
  static std::string ping(std::string_view id) {
    return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"ping"}})", id);
  }

  io::Loop loop_;
  FakeHost host_;
  io::Event ended_;
  std::unique_ptr<RawPeer> to_;
  std::unique_ptr<RawPeer> from_;
  std::unique_ptr<StdioServer> server_;
};

LOOP_TEST(StdioTest, RequestsInterleave) {
  co_await initialize();
  co_await send(call("1", "hold"));
  co_await send(call("\"1\"", "echo", R"(,"arguments":{"x":"a\nb"})"));
  const std::string quick = co_await receive();
  EXPECT_TRUE(quick.starts_with(R"({"jsonrpc":"2.0","id":"1","result")")) << quick;
  expect_valid("2025-11-25", "tools/call", quick);
  const auto held = co_await host_.held(0);
  EXPECT_EQ(held->call.context.legacy_session, "stdio");
  held->finish.set();
  const std::string slow = co_await receive();
  EXPECT_TRUE(slow.starts_with(R"({"jsonrpc":"2.0","id":1,"result")")) << slow;
}

LOOP_TEST(StdioTest, APrintedLineArrivesBeforeTheNextIsPrinted) {
  co_await send(modern_call("1", "hold"));
  const auto held = co_await host_.held(0);
  held->progress->report("first\n");
  const std::string first = co_await receive();
  expect_valid("2026-07-28", "", first);
  EXPECT_NE(first.find(R"("progressToken":"t","progress":1,"message":"first\n")"), std::string::npos)
      << first;
  held->progress->report("second");
  held->finish.set();
  const std::string second = co_await receive();
  EXPECT_NE(second.find("second"), std::string::npos) << second;
  const std::string result = co_await receive();
  expect_valid("2026-07-28", "tools/call", result);
  held->progress->report("too late");
  co_await send(modern_call("2", "echo"));
  const std::string next = co_await receive();
  EXPECT_TRUE(next.starts_with(R"({"jsonrpc":"2.0","id":2)")) << next;
}

LOOP_TEST(StdioTest, CancelledCallsSayNothingMoreLegacy) {
  co_await initialize();
  co_await send(call("0", "hold", R"(,"_meta":{"progressToken":0})"));
  const auto held = co_await host_.held(0);
  co_await send(cancel("\"0\""));
  co_await send(ping("1"));
  co_await receive();
  EXPECT_FALSE(held->cancelled.is_set());
  co_await send(cancel("0"));
  auto cancelled = co_await held->cancelled.wait(soon());
  EXPECT_TRUE(cancelled.has_value());
  held->progress->report("late");
  co_await send(cancel("0"));
  co_await send(ping("2"));
  const std::string next = co_await receive();
  EXPECT_EQ(next, R"({"jsonrpc":"2.0","id":2,"result":{}})");
}

LOOP_TEST(StdioTest, CancelledCallsSayNothingMoreModern) {
  co_await send(modern_call("7", "hold"));
  const auto held = co_await host_.held(0);
  co_await send(cancel("7"));
  auto cancelled = co_await held->cancelled.wait(soon());
  EXPECT_TRUE(cancelled.has_value());
  co_await send(modern_call("8", "echo"));
  const std::string next = co_await receive();
  EXPECT_TRUE(next.starts_with(R"({"jsonrpc":"2.0","id":8)")) << next;
}

LOOP_TEST(StdioTest, TheEndOfInputEndsRuns) {
  co_await initialize();
  co_await send(call("1", "hold"));
  const auto held = co_await host_.held(0);
  to_->close();
  auto ended = co_await ended_.wait(soon());
  EXPECT_TRUE(ended.has_value());
  EXPECT_TRUE(held->cancelled.is_set());
  EXPECT_TRUE(held->returned.is_set());
}

LOOP_TEST(StdioTest, ALostOutputEndsTheServer) {
  co_await initialize();
  co_await send(call("1", "hold"));
  const auto held = co_await host_.held(0);
  from_->close();
  co_await send(ping("2"));
  auto ended = co_await ended_.wait(soon());
  EXPECT_TRUE(ended.has_value());
  EXPECT_TRUE(held->cancelled.is_set());
}

LOOP_TEST(StdioTest, BadAndEndlessLinesAreAnsweredAndSurvived) {
  co_await initialize();
  co_await send("garbage");
  const std::string garbage = co_await receive();
  EXPECT_NE(garbage.find("-32700"), std::string::npos) << garbage;
  co_await send(std::string(200'000, 'x'));
  const std::string endless = co_await receive();
  EXPECT_NE(endless.find("-32700"), std::string::npos) << endless;
  EXPECT_NE(endless.find("longer than 65536 bytes"), std::string::npos) << endless;
  co_await to_->write(ping("1") + "\r\n\n" + ping("2") + "\n");
  const std::string one = co_await receive();
  const std::string two = co_await receive();
  EXPECT_EQ(one, R"({"jsonrpc":"2.0","id":1,"result":{}})");
  EXPECT_EQ(two, R"({"jsonrpc":"2.0","id":2,"result":{}})");
}

LOOP_TEST(StdioTest, ManyMessagesAtOnceAreAllAnswered) {
  co_await initialize();
  constexpr int kCount = 3000;
  std::string all;
  for (int i = 0; i < kCount; ++i) all += ping(std::to_string(i)) + "\n";
  io::TaskScope scope(loop_.executor());
  scope.spawn(to_->write(all), "writer");
  for (int i = 0; i < kCount; ++i) {
    const std::string answer = co_await receive();
    EXPECT_EQ(answer, fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{{}}}})", i));
  }
  auto joined = co_await scope.join(soon());
  EXPECT_TRUE(joined.has_value());
}

TEST(StandardStreamsTest, DescriptorOneIsNotTheProtocolAnyMore) {
  const pid_t child = ::fork();
  if (child == 0) {
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    if (::dup2(out.write.get(), 1) < 0 || ::dup2(err.write.get(), 2) < 0) ::_exit(1);
    auto streams = claim_standard_streams();
    if (!streams) ::_exit(2);
    if (::write(1, "noise", 5) != 5 || ::write(streams->out.get(), "real", 4) != 4) ::_exit(3);
    std::array<char, 16> text{};
    if (::read(out.read.get(), text.data(), text.size()) != 4) ::_exit(4);
    if (::read(err.read.get(), text.data(), text.size()) != 5) ::_exit(5);
    if (::read(0, text.data(), text.size()) != 0) ::_exit(6);
    ::_exit((::fcntl(streams->out.get(), F_GETFD) & FD_CLOEXEC) != 0 ? 0 : 7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace prims::transport

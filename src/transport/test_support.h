// For tests of transports and of what talks to them: a host whose calls the test drives, raw peers on the
// loop, and a way to write a test as one Task.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/event.h"
#include "io/loop.h"
#include "io/stream.h"
#include "transport/tool_host.h"

namespace prims::transport::testing {

inline Deadline soon() {
  return Deadline::after(std::chrono::seconds(10));
}

/// A call that came in and waits for the test to say what happens.
struct HeldCall {
  mcp::ToolCall call;
  std::shared_ptr<ProgressSink> progress;
  mcp::ToolResult result;
  io::Event finish;     ///< the test sets it: the tool returns `result`
  io::Event cancelled;  ///< the call was cancelled
  io::Event returned;
};

/// Tools: "echo" returns its arguments at once, "hold" waits for the test.
class FakeHost final : public ToolHost {
 public:
  /// The schema of "echo" may be replaced before the host is used.
  explicit FakeHost(json::Object echo_schema = json::Object{{"type", "object"}}) {
    for (const std::string name : {"echo", "hold"}) {
      mcp::ToolDefinition tool;
      tool.name = name;
      tool.description = "A tool for tests.";
      tool.input_schema = name == "echo" ? echo_schema : json::Object{{"type", "object"}};
      tools_.push_back(std::move(tool));
    }
  }

  std::span<const mcp::ToolDefinition> tools() const override { return tools_; }

  io::Task<mcp::ToolResult> call(mcp::ToolCall call, std::shared_ptr<ProgressSink> progress,
                                 std::shared_ptr<io::Cancellation> cancellation) override {
    if (call.name == "echo") {
      mcp::ToolResult result;
      result.structured = std::move(call.arguments);
      result.structured["status"] = "ok";
      co_return result;
    }
    auto held = std::make_shared<HeldCall>();
    held->call = std::move(call);
    held->progress = std::move(progress);
    held->result.structured = json::Object{{"status", "ok"}};
    cancellation->on_request([held] {
      held->cancelled.set();
      held->finish.set();
    });
    calls.push_back(held);
    arrived_.set();
    auto finished = co_await held->finish.wait();
    held->returned.set();
    cancellation->on_request({});
    co_return held->result;
  }

  /// The `index`th held call, waited for.
  io::Task<std::shared_ptr<HeldCall>> held(std::size_t index) {
    while (calls.size() <= index) {
      arrived_.reset();
      auto woken = co_await arrived_.wait(soon());
      if (!woken) throw std::runtime_error("no call arrived");
    }
    co_return calls[index];
  }

  std::vector<std::shared_ptr<HeldCall>> calls;

 private:
  std::vector<mcp::ToolDefinition> tools_;
  io::Event arrived_;
};

/// One end of a byte stream.
class RawPeer {
 public:
  explicit RawPeer(UniqueFd fd) : stream_(std::move(fd)) {}

  static RawPeer connect(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return RawPeer(std::move(fd));
  }

  io::Task<> write(std::string text) {
    auto written = co_await stream_.write_all(text, soon());
    EXPECT_TRUE(written.has_value());
  }

  /// Everything up to and with the first `mark`; what follows stays for the next read. Fails when it does not
  /// come.
  io::Task<std::string> read_until(std::string mark) {
    std::size_t at = buffer_.find(mark);
    while (at == std::string::npos) {
      const std::size_t got = co_await fill();
      if (got == 0) throw std::runtime_error("\"" + mark + "\" did not come after: " + buffer_);
      at = buffer_.find(mark);
    }
    std::string out = buffer_.substr(0, at + mark.size());
    buffer_.erase(0, at + mark.size());
    co_return out;
  }

  io::Task<std::string> read_to_end() {
    for (;;) {
      const std::size_t got = co_await fill();
      if (got == 0) break;
    }
    co_return std::exchange(buffer_, {});
  }

  void close() { stream_.close(); }

 private:
  io::Task<std::size_t> fill() {
    std::array<char, 4096> chunk{};
    auto got = co_await stream_.read_some(chunk, soon());
    if (!got) throw std::runtime_error(got.error().message + " after: " + buffer_);
    buffer_.append(chunk.data(), *got);
    co_return *got;
  }

  io::Stream stream_;
  std::string buffer_;
};

}  // namespace prims::transport::testing

/// A test whose body is a Task on the fixture's loop: `LOOP_TEST(Fixture, Name) { ... co_return; }`.
#define LOOP_TEST(Fixture, Name)               \
  class Fixture##Name##Body : public Fixture { \
   public:                                     \
    prims::io::Task<> body();                  \
  };                                           \
  TEST_F(Fixture##Name##Body, Runs) {          \
    loop_.run_until_done(body());              \
  }                                            \
  prims::io::Task<> Fixture##Name##Body::body()

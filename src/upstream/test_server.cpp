// A server for tests, on standard input and output, in the roles that real ones play:
//   modern       ours, with the tools echo, say (progress), wait (until cancelled) and die
//   silent       legacy; does not answer what it does not know
//   exits        legacy; exits when something comes before initialize
//   complains    says why on standard error and exits
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "io/event.h"
#include "io/loop.h"
#include "transport/stdio.h"

namespace {

using namespace prims;  // NOLINT(google-build-using-namespace): a test program of one file

class Host final : public transport::ToolHost {
 public:
  Host() {
    for (const char* name : {"echo", "say", "wait", "die"}) {
      mcp::ToolDefinition tool;
      tool.name = name;
      tool.description = "A tool for tests.";
      tool.input_schema = json::Object{{"type", "object"}};
      tools_.push_back(std::move(tool));
    }
  }
  std::span<const mcp::ToolDefinition> tools() const override { return tools_; }

  io::Task<mcp::ToolResult> call(mcp::ToolCall call, std::shared_ptr<transport::ProgressSink> progress,
                                 std::shared_ptr<io::Cancellation> cancellation) override {
    mcp::ToolResult result;
    result.structured = std::move(call.arguments);
    result.structured["process"] = ::getpid();
    result.structured["cancelled_before"] = cancelled_;
    if (call.name == "die") std::_Exit(3);
    if (call.name == "say") progress->report("said");
    if (call.name == "wait") {
      const io::Event ended;
      cancellation->on_request([ended] { ended.set(); });
      [[maybe_unused]] auto woken = co_await ended.wait();
      ++cancelled_;
    }
    co_return result;
  }

 private:
  std::vector<mcp::ToolDefinition> tools_;
  int cancelled_ = 0;
};

int serve() {
  auto streams = transport::claim_standard_streams();
  if (!streams) return 1;
  Host host;
  io::Loop loop;
  transport::StdioServer server(loop.executor(), host, mcp::ServerInfo{"9", ""}, *std::move(streams), {});
  loop.run_until_done(server.run());
  return 0;
}

int serve_legacy(bool exits_before_initialize) {
  std::string line;
  bool initialized = false;
  while (std::getline(std::cin, line)) {
    const auto value = json::parse(line);
    if (!value) return 1;
    const json::Object& message = value->get_object();
    const auto method = json::string_field(message, "method").value_or("");
    json::Object result;
    if (method == "initialize") {
      initialized = true;
      result = json::Object{{"protocolVersion", "2024-11-05"},
                            {"capabilities", json::Object()},
                            {"serverInfo", json::Object{{"name", "old"}, {"version", "0"}}}};
    } else if (!initialized && exits_before_initialize) {
      return 1;
    } else if (method == "tools/list") {
      result = json::Object{{"tools", json::Array()}};
    } else {
      continue;
    }
    const json::Object answer{{"jsonrpc", "2.0"}, {"id", message.at("id")}, {"result", std::move(result)}};
    std::cout << json::write(answer) << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "modern") return serve();
  if (role == "silent") return serve_legacy(false);
  if (role == "exits") return serve_legacy(true);
  std::cerr << "the key is missing" << std::endl;
  return 2;
}

// Ping and echo on our own transport, without a sandbox behind it: what the protocol itself costs. Serves any
// free port of 127.0.0.1 and prints the address.
#include <fmt/format.h>

#include <cstdio>

#include "http/server.h"
#include "io/loop.h"
#include "mcp/writer.h"
#include "transport/streamable_http.h"

namespace prims {
namespace {

json::Object text_schema() {
  return {{"type", "object"},
          {"properties", json::Object{{"text", json::Object{{"type", "string"}}}}},
          {"required", json::Array{"text"}}};
}

class Echo : public transport::ToolHost {
 public:
  Echo() {
    mcp::ToolDefinition echo;
    echo.name = "echo";
    echo.description = "Returns its text";
    echo.input_schema = text_schema();
    echo.output_schema = text_schema();
    definitions_.push_back(std::move(echo));
  }

  std::span<const mcp::ToolDefinition> tools() const override { return definitions_; }

  io::Task<mcp::ToolResult> call(mcp::ToolCall call, std::shared_ptr<transport::ProgressSink>,
                                 std::shared_ptr<io::Cancellation>) override {
    mcp::ToolResult result;
    result.structured = std::move(call.arguments);
    co_return result;
  }

 private:
  std::vector<mcp::ToolDefinition> definitions_;
};

mcp::ServerInfo server_info() {
  mcp::ServerInfo info;
  info.version = "0.1.0";
  return info;
}

int serve_http() {
  io::Loop loop;
  Echo echo;
  transport::StreamableHttp mcp(loop.executor(), echo, server_info(), {});
  http::Handler handler = [&mcp](http::Request request, http::Responder responder) {
    return mcp.handle(std::move(request), std::move(responder), mcp::Principal{});
  };
  auto server = http::Server::listen(loop.executor(), {{"127.0.0.1", 0}}, {}, std::move(handler));
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().message);
    return 1;
  }
  fmt::print("{}/mcp\n", (*server)->urls().front());
  std::fflush(stdout);
  loop.run();
  return 0;
}

}  // namespace
}  // namespace prims

int main() {
  return prims::serve_http();
}

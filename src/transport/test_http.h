// For tests: a streamable HTTP endpoint on a loopback port, with a FakeHost behind it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "transport/streamable_http.h"
#include "transport/test_support.h"

namespace prims::transport::testing {

/// The handler a http::Server gets; `transport` outlives the server.
inline io::Task<> handle_with(StreamableHttp* transport, http::Request request, http::Responder responder) {
  co_await transport->handle(std::move(request), std::move(responder), mcp::Principal());
}

class HttpFixture : public ::testing::Test {
 protected:
  HttpFixture() { start({}); }
  ~HttpFixture() override { loop_.run_until_done(shut_down()); }

  /// Replaces the endpoint by one with other options.
  void start(StreamableHttpOptions options) {
    server_.reset();
    transport_ = std::make_unique<StreamableHttp>(loop_.executor(), host_, mcp::ServerInfo{"1.2.3", ""},
                                                  std::move(options));
    auto handler = [this](http::Request request, http::Responder responder) {
      return handle_with(transport_.get(), std::move(request), std::move(responder));
    };
    const std::vector<http::ListenAddress> addresses = {
        {"127.0.0.1", 0, http::ListenAddress::Need::required}};
    auto server = http::Server::listen(loop_.executor(), addresses, {}, handler);
    if (!server) throw std::runtime_error(server.error().message);
    server_ = *std::move(server);
  }

  io::Task<> shut_down() {
    transport_->close_streams();
    auto ended = co_await transport_->end_calls(soon());
    EXPECT_TRUE(ended.has_value());
    co_await server_->drain(soon());
  }

  RawPeer connect() { return RawPeer::connect(server_->port()); }

  io::Loop loop_;
  FakeHost host_{
      json::parse(R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}})")
          ->get_object()};
  std::unique_ptr<StreamableHttp> transport_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace prims::transport::testing

// Lines in, messages out; every answer is held against the official schema of its version.
#include "mcp/stdio_endpoint.h"

#include <gtest/gtest.h>

#include "mcp/endpoint_test_support.h"
#include "mcp/schema_check.h"

namespace prims::mcp {
namespace {

using testing::code_of;
using testing::expect_valid;
using testing::modern_request;
using testing::request;
using testing::tools;

class StdioEndpointTest : public ::testing::Test {
 protected:
  std::string answer(StdioEndpoint& endpoint, std::string_view line) {
    const StdioReaction reaction = endpoint.line(line, Principal());
    EXPECT_LE(reaction.ready.size(), 1U);
    return reaction.ready.empty() ? "" : reaction.ready.front();
  }
  static std::string initialize(std::string_view version) {
    return request(
        "initialize",
        fmt::format(R"("protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}})",
                    version));
  }

  std::vector<ToolDefinition> tools_ = tools();
  ServerCore core_{ServerInfo{"1.2.3", ""}, tools_};
};

TEST_F(StdioEndpointTest, DiscoverDoesNotPinButAModernRequestDoes) {
  StdioEndpoint endpoint(core_);
  expect_valid("2026-07-28", "server/discover", answer(endpoint, modern_request("server/discover")));
  expect_valid("2025-11-25", "initialize", answer(endpoint, initialize("2025-11-25")));
  EXPECT_EQ(code_of(answer(endpoint, request("tools/list", ""))), 0);
  EXPECT_EQ(code_of(answer(endpoint, modern_request("server/discover"))), -32601);
  EXPECT_EQ(code_of(answer(endpoint, initialize("2025-11-25"))), -32600);

  StdioEndpoint modern(core_);
  EXPECT_EQ(code_of(answer(modern, modern_request("tools/list"))), 0);
  EXPECT_EQ(code_of(answer(modern, initialize("2025-11-25"))), -32022);
  EXPECT_EQ(code_of(answer(modern, modern_request("initialize"))), -32601);
}

TEST_F(StdioEndpointTest, NothingButPingBeforeInitialize) {
  StdioEndpoint endpoint(core_);
  EXPECT_EQ(code_of(answer(endpoint, request("ping", ""))), 0);
  EXPECT_EQ(code_of(answer(endpoint, request("tools/list", ""))), -32602);
  EXPECT_EQ(answer(endpoint, ""), "");
  EXPECT_EQ(answer(endpoint, " \r"), "");
  EXPECT_EQ(code_of(answer(endpoint, "nonsense")), -32700);
  EXPECT_EQ(code_of(StdioEndpoint::too_long(100)), -32700);
}

TEST_F(StdioEndpointTest, CancellationReachesCallsOfBothEras) {
  for (const bool is_modern : {false, true}) {
    StdioEndpoint endpoint(core_);
    if (!is_modern) answer(endpoint, initialize("2025-11-25"));
    const std::string call = is_modern ? modern_request("tools/call", R"("name":"run_code")")
                                       : request("tools/call", R"("name":"run_code")");
    StdioReaction reaction = endpoint.line(call, Principal());
    ASSERT_EQ(reaction.calls.size(), 1U);
    EXPECT_EQ(reaction.calls[0].call.context.legacy_session.has_value(), !is_modern);
    int cancelled = 0;
    reaction.calls[0].ticket.on_cancel([&] { ++cancelled; });
    endpoint.line(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}})",
                  Principal());
    EXPECT_EQ(cancelled, 0);
    endpoint.line(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})",
                  Principal());
    EXPECT_EQ(cancelled, 1);
  }
}

TEST_F(StdioEndpointTest, BatchesGiveOneAnswer) {
  StdioEndpoint endpoint(core_);
  answer(endpoint, initialize("2025-03-26"));
  const StdioReaction reaction = endpoint.line(
      "[" + request("ping", "") + "," + request("tools/call", R"("name":"run_code")", "2") + "]",
      Principal());
  EXPECT_EQ(reaction.shape, StdioReaction::Shape::batch);
  EXPECT_EQ(reaction.ready.size(), 1U);
  EXPECT_EQ(reaction.calls.size(), 1U);
  StdioEndpoint newer(core_);
  answer(newer, initialize("2025-06-18"));
  EXPECT_EQ(code_of(answer(newer, "[" + request("ping", "") + "]")), -32600);
}

}  // namespace
}  // namespace prims::mcp

// What the client sends, held against the official schemas, and what it makes of answers.
#include "mcp/client_core.h"

#include <gtest/gtest.h>

#include "mcp/header_value.h"
#include "mcp/schema_check.h"

namespace prims::mcp {
namespace {

using testing::expect_valid_request;

Message message(std::string_view text) {
  return read_message(read_json(text).value()).value();
}

TEST(ClientCoreTest, ItsMessagesConformInBothEras) {
  ClientCore core("1.2.3");
  expect_valid_request("2026-07-28", core.discover().text);
  expect_valid_request("2026-07-28", core.list_tools(std::nullopt).text);
  expect_valid_request("2026-07-28", core.list_tools("").text);
  const Outgoing call = core.call_tool("run_code", json::Object{{"code", "1"}});
  expect_valid_request("2026-07-28", call.text);
  EXPECT_EQ(call.name, "run_code");
  expect_valid_request("2026-07-28", core.cancelled(*call.id).text);
  for (const std::string version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    expect_valid_request(version, core.initialize().text);
    core.speak(Dialect{Era::legacy, version});
    expect_valid_request(version, core.initialized().text);
    expect_valid_request(version, core.list_tools("next").text);
    const std::string legacy_call = core.call_tool("run_code", {}).text;
    expect_valid_request(version, legacy_call);
    EXPECT_EQ(legacy_call.find("io.modelcontextprotocol"), std::string::npos);
    expect_valid_request(version, core.cancelled(RequestId("x")).text);
  }
}

TEST(ClientCoreTest, IdsAreNeverUsedTwiceAndTheTokenIsTheId) {
  ClientCore core("1");
  const Outgoing first = core.call_tool("a", {});
  const Outgoing second = core.call_tool("a", {});
  EXPECT_NE(first.id, second.id);
  EXPECT_NE(second.text.find("\"progressToken\":" + second.id->text()), std::string::npos);
}

TEST(ClientCoreTest, OnlyAClearSignIsModern) {
  const auto verdict = [](std::string_view rest) {
    return judge_probe(message(R"({"jsonrpc":"2.0","id":1,)" + std::string(rest) + "}"));
  };
  EXPECT_EQ(verdict(R"("result":{"supportedVersions":["2026-07-28","2025-11-25"]})"), ProbeVerdict::modern);
  EXPECT_EQ(
      verdict(R"("error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"x"}})"),
      ProbeVerdict::modern);
  EXPECT_EQ(verdict(R"("result":{"supportedVersions":["2025-11-25"]})"), ProbeVerdict::legacy);
  EXPECT_EQ(verdict(R"("result":{})"), ProbeVerdict::legacy);
  for (const int code : {-32601, -32602, -32600, -32000, -32020, -32001, 7}) {
    EXPECT_EQ(verdict(R"("error":{"message":"m","code":)" + std::to_string(code) + "}"),
              ProbeVerdict::legacy);
  }
  EXPECT_EQ(verdict(R"("result":{"supportedVersions":["2099-01-01"]})"), ProbeVerdict::incompatible);
  EXPECT_EQ(verdict(R"("error":{"code":-32022,"message":"m"})"), ProbeVerdict::incompatible);
}

TEST(ClientCoreTest, ResultsAreReadStrictly) {
  EXPECT_TRUE(result_of(message(R"({"jsonrpc":"2.0","id":1,"result":{"content":[]}})")).has_value());
  EXPECT_TRUE(
      result_of(message(R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}})")).has_value());
  for (const std::string_view bad :
       {R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}})",
        R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"novel"}})",
        R"({"jsonrpc":"2.0","id":1,"result":{"resultType":7}})", R"({"jsonrpc":"2.0","id":1,"result":[]})"}) {
    EXPECT_FALSE(result_of(message(bad)).has_value()) << bad;
  }
  const auto refused =
      result_of(message(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}})"));
  EXPECT_EQ(refused.error().kind, Kind::invalid_input);
  EXPECT_EQ(refused.error().message, "no such tool (code -32602)");
}

TEST(ClientCoreTest, ToolPagesKeepWhatTheServerSent) {
  const auto page = read_tool_page(*json::object_field(
      json::parse(
          R"({"r":{"tools":[{"name":"t","inputSchema":{"$schema":"x","type":"object"},"novel":1}],"nextCursor":""}})")
          .value()
          .get_object(),
      "r"));
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->next_cursor, "");
  EXPECT_TRUE(page->tools[0].definition.contains("novel"));
  EXPECT_FALSE(read_tool_page(json::parse(R"({"tools":[{"name":"t"}]})").value().get_object()).has_value());
}

TEST(ClientCoreTest, RequestsOfServersAreAnswered) {
  EXPECT_EQ(answer_server(message(R"({"jsonrpc":"2.0","id":"p","method":"ping"})")),
            R"({"jsonrpc":"2.0","id":"p","result":{}})");
  EXPECT_NE(answer_server(message(R"({"jsonrpc":"2.0","id":0,"method":"roots/list"})")).find("-32601"),
            std::string::npos);
}

TEST(ClientCoreTest, BadHeaderAnnotationsAreFound) {
  const auto fault = [](std::string_view properties) {
    return mirror_fault(json::parse(R"({"type":"object","properties":)" + std::string(properties) + "}")
                            .value()
                            .get_object())
        .has_value();
  };
  EXPECT_FALSE(
      fault(R"({"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"boolean","x-mcp-header":"B"}})"));
  for (const std::string_view bad :
       {R"({"a":{"type":"string","x-mcp-header":""}})", R"({"a":{"type":"string","x-mcp-header":"a b"}})",
        R"({"a":{"type":"string","x-mcp-header":"a:"}})", R"({"a":{"type":"string","x-mcp-header":"ü"}})",
        R"({"a":{"type":"string","x-mcp-header":1}})", R"({"a":{"type":"number","x-mcp-header":"A"}})",
        R"({"a":{"type":"object","x-mcp-header":"A"}})", R"({"a":{"x-mcp-header":"A"}})",
        R"({"a":{"type":["string","null"],"x-mcp-header":"A"}})",
        R"({"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}})"}) {
    EXPECT_TRUE(fault(bad)) << bad;
  }
}

}  // namespace
}  // namespace prims::mcp

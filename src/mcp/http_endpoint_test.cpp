// HTTP requests in, decisions out, as tables; every answer is held against the official schema of its
// version.
#include "mcp/http_endpoint.h"

#include <gtest/gtest.h>

#include <map>

#include "mcp/endpoint_test_support.h"
#include "mcp/schema_check.h"

namespace prims::mcp {
namespace {

using testing::basic;
using testing::code_of;
using testing::expect_valid;
using testing::modern;
using testing::modern_request;
using testing::object;
using testing::request;
using testing::TestHeaders;
using testing::tools;

class HttpEndpointTest : public ::testing::Test {
 protected:
  HttpReaction handle(std::string_view method, const Headers& headers, std::string_view body = "",
                      const std::string& principal = "anonymous") {
    return endpoint_.handle(HttpRequest{method, headers, body, Principal{principal}, now_});
  }

  PlainReply reply(std::string_view method, const Headers& headers, std::string_view body = "") {
    HttpReaction reaction = handle(method, headers, body);
    EXPECT_TRUE(std::holds_alternative<PlainReply>(reaction.action));
    return std::get<PlainReply>(reaction.action);
  }

  /// The id of a fresh session; its answer is checked against the schema.
  std::string open_session(const std::string& version) {
    const std::string body = request(
        "initialize",
        fmt::format(R"("protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}})",
                    version));
    const HttpReaction reaction = handle("POST", basic(), body);
    const auto& plain = std::get<PlainReply>(reaction.action);
    EXPECT_EQ(plain.status, 200U);
    expect_valid(version, "initialize", plain.body);
    for (const HttpHeader& header : reaction.headers) {
      if (header.name == "Mcp-Session-Id") return header.value;
    }
    ADD_FAILURE() << "no session id";
    return "";
  }

  TestHeaders in_session(const std::string& id) {
    TestHeaders headers = basic();
    headers.add("Mcp-Session-Id", id);
    return headers;
  }

  std::vector<ToolDefinition> tools_ = tools();
  ServerCore core_{ServerInfo{"1.2.3", "Use it well."}, tools_};
  HttpEndpoint endpoint_{core_, OriginRules{}};
  Clock::time_point now_ = Clock::now();
};

TEST_F(HttpEndpointTest, ModernAnswersCarryWhatTheEraDemands) {
  for (const std::string method : {"server/discover", "tools/list"}) {
    const auto plain = reply("POST", modern(method), modern_request(method));
    EXPECT_EQ(plain.status, 200U);
    expect_valid("2026-07-28", method, plain.body);
    const json::Object message = object(plain.body);
    const json::Object& result = *json::object_field(message, "result");
    EXPECT_EQ(json::string_field(result, "resultType"), "complete");
    EXPECT_EQ(json::string_field(result, "cacheScope"), "public");
    EXPECT_TRUE(json::integer_field(result, "ttlMs").has_value());
    const json::Object* meta = json::object_field(result, "_meta");
    const json::Object* server = json::object_field(*meta, kMetaServerInfo);
    EXPECT_EQ(json::string_field(*server, "name"), "prims");
    EXPECT_EQ(json::string_field(*server, "version"), "1.2.3");
  }
}

struct ModernCase {
  std::string_view what;
  std::string body;
  TestHeaders headers;
  unsigned status;
  int code;
};

TEST_F(HttpEndpointTest, ModernChecksAnswerInOrder) {
  const std::string call = modern_request("tools/call", R"("name":"run_code","arguments":{"code":"1"})");
  TestHeaders no_version = basic();
  no_version.add("Mcp-Method", "tools/list");
  TestHeaders other_version = basic();
  other_version.add("MCP-Protocol-Version", "2025-11-25");
  TestHeaders future = basic();
  future.add("MCP-Protocol-Version", "2099-01-01");
  TestHeaders twice = modern("tools/list");
  twice.add("Mcp-Method", "tools/call");
  const std::string bare = R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"})";
  const std::string tomorrow =
      R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}})";
  const ModernCase table[] = {
      {"no version header", modern_request("tools/list"), no_version, 400, -32020},
      {"header and body differ", modern_request("tools/list"), other_version, 400, -32020},
      {"no claim at all", request("tools/list", ""), modern("tools/list"), 400, -32602},
      {"no capabilities", request("tools/list", bare), modern("tools/list"), 400, -32602},
      {"unknown version", request("tools/list", tomorrow), future, 400, -32022},
      {"unknown method", modern_request("resources/list"), modern("resources/list"), 404, -32601},
      {"modern initialize", modern_request("initialize"), modern("initialize"), 404, -32601},
      {"modern ping", modern_request("ping"), modern("ping"), 404, -32601},
      {"no method header", modern_request("tools/list"),
       [] {
         TestHeaders h = basic();
         h.add("MCP-Protocol-Version", "2026-07-28");
         return h;
       }(),
       400, -32020},
      {"wrong method header", modern_request("tools/list"), modern("tools/call"), 400, -32020},
      {"method header twice", modern_request("tools/list"), twice, 400, -32020},
      {"no name header", call, modern("tools/call"), 400, -32020},
      {"wrong name header", call, modern("tools/call", "other"), 400, -32020},
      {"header of wrong case", call, modern("tools/call", "Run_Code"), 400, -32020},
      {"unknown tool", modern_request("tools/call", R"("name":"run_cod")"), modern("tools/call", "run_cod"),
       200, -32602},
      {"bad arguments", modern_request("tools/call", R"("name":"run_code","arguments":[])"),
       modern("tools/call", "run_code"), 400, -32602},
      {"bad token",
       request(
           "tools/call",
           R"("name":"run_code","_meta":{"progressToken":1.5,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})"),
       modern("tools/call", "run_code"), 400, -32602},
      {"unknown cursor", modern_request("tools/list", R"("cursor":"x")"), modern("tools/list"), 200, -32602},
      {"batch", "[" + modern_request("tools/list") + "]", modern("tools/list"), 400, -32600},
      {"not JSON", "{", modern("tools/list"), 400, -32700},
      {"null id", R"({"jsonrpc":"2.0","id":null,"method":"tools/list"})", modern("tools/list"), 400, -32600},
  };
  for (const ModernCase& one : table) {
    const auto plain = reply("POST", one.headers, one.body);
    EXPECT_EQ(plain.status, one.status) << one.what << plain.body;
    EXPECT_EQ(code_of(plain.body), one.code) << one.what << plain.body;
    expect_valid("2026-07-28", "", plain.body);
  }
  EXPECT_EQ(core_.in_flight().size(), 0U);
}

TEST_F(HttpEndpointTest, AnUnsupportedVersionIsToldWhatIsSupported) {
  TestHeaders headers = basic();
  headers.add("MCP-Protocol-Version", "2099-01-01");
  const auto plain = reply(
      "POST", headers,
      request(
          "tools/list",
          R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}})"));
  const json::Object message = object(plain.body);
  const json::Object* data = json::object_field(*json::object_field(message, "error"), "data");
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(json::string_field(*data, "requested"), "2099-01-01");
  EXPECT_EQ(json::array_field(*data, "supported")->front(), "2026-07-28");
  if (const json::Schema* schema = testing::schema_of("2026-07-28")) {
    EXPECT_EQ(schema->fault(message, "UnsupportedProtocolVersionError").value_or(""), "");
  }
}

TEST_F(HttpEndpointTest, MirroredParametersMustAgree) {
  const auto call = [&](std::string_view arguments, std::optional<std::string> header) {
    TestHeaders headers = modern("tools/call", "run_code");
    if (header) headers.add("Mcp-Param-Workspace", *header);
    const std::string body =
        modern_request("tools/call", fmt::format(R"("name":"run_code","arguments":{})", arguments));
    HttpReaction reaction = handle("POST", headers, body);
    const auto* plain = std::get_if<PlainReply>(&reaction.action);
    return plain == nullptr ? 0 : code_of(plain->body);
  };
  EXPECT_EQ(call(R"({"code":"1","workspace":"ws_1"})", "ws_1"), 0);
  EXPECT_EQ(call(R"({"code":"1","workspace":"ws_1"})", "=?base64?d3NfMQ==?="), 0);
  EXPECT_EQ(call(R"({"code":"1","workspace":"ws_1"})", std::nullopt), -32020);
  EXPECT_EQ(call(R"({"code":"1","workspace":"ws_1"})", "ws_2"), -32020);
  EXPECT_EQ(call(R"({"code":"1","workspace":"ws_1"})", "=?base64?d3NfMQ?="), -32020);
  EXPECT_EQ(call(R"({"code":"1","workspace":null})", std::nullopt), 0);
  EXPECT_EQ(call(R"({"code":"1"})", std::nullopt), 0);
  EXPECT_EQ(call(R"({"code":"1"})", "ws_1"), -32020);
}

TEST_F(HttpEndpointTest, AModernCallStartsAndCarriesItsContext) {
  const std::string meta =
      R"("_meta":{"progressToken":0,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}})";
  HttpReaction reaction = handle(
      "POST", modern("tools/call", "run_code"),
      request("tools/call", R"("name":"run_code","arguments":{"code":"1"},)" + meta, "\"x\""), "alice");
  auto& run = std::get<RunCalls>(reaction.action);
  ASSERT_EQ(run.calls.size(), 1U);
  const StartedCall& call = run.calls.front();
  EXPECT_EQ(run.era, Era::modern);
  EXPECT_EQ(call.token, ProgressToken(0));
  EXPECT_EQ(call.call.context.client_name, "t");
  EXPECT_EQ(call.call.context.principal.name, "alice");
  EXPECT_TRUE(call.call.context.wants_progress);
  EXPECT_FALSE(call.call.context.legacy_session.has_value());
  EXPECT_EQ(call.call.context.traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(core_.in_flight().size(), 1U);
  ToolResult result;
  result.structured = json::Object{{"status", "ok"}, {"stdout", "a\"b\n"}};
  result.extra_content.push_back(
      json::Object{{"type", "image"}, {"data", "aGk="}, {"mimeType", "image/png"}});
  const std::string answer = call.writer->tool_result(call.id, result);
  expect_valid("2026-07-28", "tools/call", answer);
  EXPECT_TRUE(answer.starts_with(R"({"jsonrpc":"2.0","id":"x")"));
  const std::string progress = call.writer->progress(*call.token, ProgressUpdate{1, "line"});
  expect_valid("2026-07-28", "", progress);
  EXPECT_NE(progress.find(R"("progressToken":0)"), std::string::npos);
  run.calls.clear();
  EXPECT_EQ(core_.in_flight().size(), 0U);
}

TEST_F(HttpEndpointTest, EveryLegacyVersionAnswersInItsOwnShape) {
  for (const std::string version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    const TestHeaders headers = in_session(open_session(version));
    EXPECT_EQ(reply("POST", headers, R"({"jsonrpc":"2.0","method":"notifications/initialized"})").status,
              202U);
    for (const std::string method : {"ping", "tools/list"}) {
      const auto plain = reply("POST", headers, request(method, ""));
      EXPECT_EQ(plain.status, 200U);
      expect_valid(version, method, plain.body);
      EXPECT_EQ(plain.body.find("resultType"), std::string::npos);
    }
    HttpReaction reaction = handle(
        "POST", headers,
        request("tools/call", R"("name":"run_code","arguments":{"code":"1"},"_meta":{"progressToken":"p"})"));
    const auto& run = std::get<RunCalls>(reaction.action);
    ToolResult result;
    result.structured = json::Object{{"status", "ok"}};
    result.extra_content.push_back(
        json::Object{{"type", "resource_link"}, {"name", "a.png"}, {"uri", "artifact://x/a.png"}});
    result.is_error = true;
    const std::string answer = run.calls[0].writer->tool_result(run.calls[0].id, result);
    expect_valid(version, "tools/call", answer);
    EXPECT_EQ(answer.find("structuredContent") != std::string::npos, version >= "2025-06-18");
    expect_valid(version, "", run.calls[0].writer->progress(*run.calls[0].token, ProgressUpdate{1, "x"}));
  }
}

TEST_F(HttpEndpointTest, LegacySessionsAreMintedHereAndEnd) {
  TestHeaders fixed = basic();
  fixed.add("Mcp-Session-Id", "attacker-chosen");
  const HttpReaction opened = handle(
      "POST", fixed,
      request("initialize",
              R"("protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"p","version":"1"})"));
  EXPECT_EQ(std::get<PlainReply>(opened.action).status, 200U);
  for (const HttpHeader& header : opened.headers) EXPECT_NE(header.value, "attacker-chosen");

  const std::string id = open_session("2025-11-25");
  EXPECT_EQ(reply("POST", basic(), request("tools/list", "")).status, 400U);
  EXPECT_EQ(reply("POST", in_session("no-such-session-0123456789"), request("tools/list", "")).status, 404U);
  EXPECT_EQ(code_of(reply("POST", in_session("no-such-session-0123456789"), request("tools/list", "")).body),
            -32001);
  EXPECT_EQ(reply("POST", in_session("../../../../etc/passwd"), request("tools/list", "")).status, 404U);
  EXPECT_TRUE(std::holds_alternative<OpenStream>(handle("GET", in_session(id)).action));
  const HttpReaction foreign = handle("POST", in_session(id), request("tools/list", ""), "bob");
  EXPECT_EQ(std::get<PlainReply>(foreign.action).status, 404U);
  EXPECT_EQ(reply("DELETE", in_session(id)).status, 204U);
  EXPECT_EQ(reply("POST", in_session(id), request("tools/list", "")).status, 404U);
  EXPECT_EQ(reply("DELETE", in_session(id)).status, 404U);
  EXPECT_EQ(reply("GET", in_session(id)).status, 404U);
}

TEST_F(HttpEndpointTest, OldClientsWithoutAVersionHeaderAreServed) {
  const std::string id = open_session("2025-03-26");
  EXPECT_EQ(reply("POST", in_session(id), request("tools/list", "")).status, 200U);
  EXPECT_TRUE(std::holds_alternative<OpenStream>(handle("GET", in_session(id)).action));
  TestHeaders wrong = in_session(id);
  wrong.add("MCP-Protocol-Version", "1999-01-01");
  EXPECT_EQ(reply("POST", wrong, request("tools/list", "")).status, 400U);
  EXPECT_EQ(reply("DELETE", in_session(id)).status, 204U);
}

TEST_F(HttpEndpointTest, ALegacyMethodHeaderDoesNotMakeARequestModern) {
  TestHeaders headers = basic();
  headers.add("Mcp-Method", "initialize");
  const auto plain = reply(
      "POST", headers,
      request("initialize",
              R"("protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"p","version":"1"})"));
  EXPECT_EQ(plain.status, 200U);
}

TEST_F(HttpEndpointTest, LegacyErrorsKeepStatus200) {
  const TestHeaders headers = in_session(open_session("2025-11-25"));
  for (const auto& [body, code] :
       std::vector<std::pair<std::string, int>>{{request("nothing/here", ""), -32601},
                                                {request("logging/setLevel", R"("level":"info")"), -32601},
                                                {request("server/discover", ""), -32601},
                                                {request("tools/call", R"("name":"nope")"), -32602},
                                                {request("tools/call", R"("arguments":{})"), -32602},
                                                {request("tools/list", R"("cursor":"x")"), -32602}}) {
    const auto plain = reply("POST", headers, body);
    EXPECT_EQ(plain.status, 200U) << body;
    EXPECT_EQ(code_of(plain.body), code) << body;
    expect_valid("2025-11-25", "", plain.body);
  }
}

TEST_F(HttpEndpointTest, BatchesExistInOneVersionOnly) {
  const std::string batch = "[" + request("ping", "", "1") + "," + request("tools/list", "", "\"1\"") +
                            R"(,{"jsonrpc":"2.0","method":"notifications/initialized"},5])";
  const auto plain = reply("POST", in_session(open_session("2025-03-26")), batch);
  EXPECT_EQ(plain.status, 200U);
  EXPECT_EQ(json::parse(plain.body)->get_array().size(), 3U);
  EXPECT_EQ(reply("POST", in_session(open_session("2025-06-18")), batch).status, 400U);
  EXPECT_EQ(reply("POST", in_session(open_session("2025-03-26")), "[]").status, 400U);
  const auto only_notes = reply("POST", in_session(open_session("2025-03-26")),
                                R"([{"jsonrpc":"2.0","method":"notifications/initialized"}])");
  EXPECT_EQ(only_notes.status, 202U);
  EXPECT_EQ(only_notes.body, "");
}

TEST_F(HttpEndpointTest, CancellationIsTypeAwareAndStaysInItsSession) {
  const std::string mine = open_session("2025-11-25");
  const std::string other = open_session("2025-11-25");
  HttpReaction reaction =
      handle("POST", in_session(mine), request("tools/call", R"("name":"run_code")", "0"));
  auto& run = std::get<RunCalls>(reaction.action);
  int cancelled = 0;
  run.calls[0].ticket.on_cancel([&] { ++cancelled; });
  const auto duplicate = reply("POST", in_session(mine), request("tools/call", R"("name":"run_code")", "0"));
  EXPECT_EQ(duplicate.status, 200U);
  EXPECT_EQ(code_of(duplicate.body), -32600);
  const auto cancel = [&](const std::string& session, std::string_view id) {
    return reply("POST", in_session(session),
                 fmt::format(
                     R"({{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}})",
                     id))
        .status;
  };
  EXPECT_EQ(cancel(mine, "\"0\""), 202U);
  EXPECT_EQ(cancel(other, "0"), 202U);
  EXPECT_EQ(cancel(mine, "7"), 202U);
  EXPECT_EQ(cancelled, 0);
  EXPECT_EQ(cancel(mine, "0"), 202U);
  EXPECT_EQ(cancelled, 1);
}

TEST_F(HttpEndpointTest, EndingASessionCancelsItsCalls) {
  const std::string id = open_session("2025-11-25");
  HttpReaction reaction = handle("POST", in_session(id), request("tools/call", R"("name":"run_code")"));
  int cancelled = 0;
  std::get<RunCalls>(reaction.action).calls[0].ticket.on_cancel([&] { ++cancelled; });
  std::string ended;
  endpoint_.on_session_end([&](const std::string& session) { ended = session; });
  EXPECT_EQ(reply("DELETE", in_session(id)).status, 204U);
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(ended, id);
}

TEST_F(HttpEndpointTest, HostAndOriginAreCheckedFirst) {
  const auto status = [&](std::initializer_list<std::pair<std::string, std::string>> fields) {
    TestHeaders headers(fields);
    headers.add("Content-Type", "application/json");
    headers.add("MCP-Protocol-Version", "2026-07-28");
    headers.add("Mcp-Method", "tools/list");
    return reply("POST", headers, modern_request("tools/list")).status;
  };
  EXPECT_EQ(status({{"Host", "localhost:9000"}, {"Origin", "http://localhost:9000"}}), 200U);
  EXPECT_EQ(status({{"Host", "localhost:9000"}, {"Origin", "null"}}), 403U);
  EXPECT_EQ(status({{"Host", "localhost:9000"}, {"Origin", "http://evil.example.com"}}), 403U);
  EXPECT_EQ(status({{"Host", "evil.example.com"}}), 403U);
  EXPECT_EQ(status({}), 403U);
  EXPECT_EQ(status({{"Host", "localhost"}, {"Host", "evil.example.com"}}), 403U);
}

TEST_F(HttpEndpointTest, BrowsersGetCors) {
  TestHeaders headers{{"Host", "localhost:9000"},
                      {"Origin", "http://localhost:5173"},
                      {"Access-Control-Request-Headers", "content-type, Mcp-Param-Workspace, x-evil"}};
  const HttpReaction reaction = handle("OPTIONS", headers);
  EXPECT_EQ(std::get<PlainReply>(reaction.action).status, 204U);
  std::map<std::string, std::string> sent;
  for (const HttpHeader& header : reaction.headers) sent[header.name] = header.value;
  EXPECT_EQ(sent["Access-Control-Allow-Origin"], "http://localhost:5173");
  EXPECT_NE(sent["Access-Control-Allow-Headers"].find("Mcp-Param-Workspace"), std::string::npos);
  EXPECT_EQ(sent["Access-Control-Allow-Headers"].find("evil"), std::string::npos);
  EXPECT_NE(sent["Access-Control-Expose-Headers"].find("Mcp-Session-Id"), std::string::npos);
}

TEST_F(HttpEndpointTest, MediaTypesAreChecked) {
  TestHeaders plain_text{{"Host", "localhost"}, {"Content-Type", "text/plain"}};
  EXPECT_EQ(reply("POST", plain_text, "{}").status, 415U);
  EXPECT_EQ(reply("POST", TestHeaders{{"Host", "localhost"}}, "{}").status, 415U);
  TestHeaders html{
      {"Host", "localhost"}, {"Content-Type", "application/json; charset=utf-8"}, {"Accept", "text/html"}};
  EXPECT_EQ(reply("POST", html, modern_request("tools/list")).status, 406U);
  EXPECT_EQ(reply("GET", TestHeaders{{"Host", "localhost"}, {"Accept", "text/html"}}).status, 406U);
}

TEST_F(HttpEndpointTest, ModernClientsHaveNoGetAndNoDelete) {
  TestHeaders headers{{"Host", "localhost"}, {"MCP-Protocol-Version", "2026-07-28"}};
  EXPECT_EQ(reply("GET", headers).status, 405U);
  EXPECT_EQ(reply("DELETE", headers).status, 405U);
  EXPECT_EQ(reply("PUT", headers).status, 405U);
  EXPECT_EQ(reply("POST", modern("notifications/cancelled"),
                  R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})")
                .status,
            202U);
}

}  // namespace
}  // namespace prims::mcp

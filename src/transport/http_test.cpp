// Streamable HTTP on real sockets, with a host that does what the test says and when.
#include <fmt/format.h>

#include "mcp/schema_check.h"
#include "transport/test_http.h"

namespace prims::transport {
namespace {

using mcp::testing::expect_valid;
using testing::RawPeer;
using testing::soon;

constexpr std::string_view kModernMeta =
    R"("io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{})";

/// The data of the first event in what a chunked stream brought.
std::string data_of(std::string_view text) {
  const std::size_t from = text.find("data: {");
  if (from == std::string_view::npos) return "";
  return std::string(text.substr(from + 6, text.find('\n', from) - from - 6));
}

class HttpTest : public testing::HttpFixture {
 protected:
  static std::string request(std::string_view method, std::string_view headers, std::string_view body) {
    return fmt::format(
        "{} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}Content-Length: "
        "{}\r\n\r\n{}",
        method, headers, body.size(), body);
  }

  static std::string modern_call(std::string_view tool, std::string_view token = "") {
    const std::string progress = token.empty() ? "" : fmt::format(R"("progressToken":{},)", token);
    const std::string body = fmt::format(
        R"({{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{}","arguments":{{"a":1}},"_meta":{{{}{}}}}}}})",
        tool, progress, kModernMeta);
    const std::string headers =
        fmt::format("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\n", tool);
    return request("POST", headers, body);
  }

  static std::string legacy_call(std::string_view session, std::string_view tool, std::string_view id,
                                 std::string_view token = "") {
    const std::string meta = token.empty() ? "" : fmt::format(R"(,"_meta":{{"progressToken":{}}})", token);
    return request(
        "POST", fmt::format("Mcp-Session-Id: {}\r\n", session),
        fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"{}"{}}}}})", id,
                    tool, meta));
  }

  static std::string notification(std::string_view session, std::string_view method,
                                  std::string_view params) {
    return request("POST", fmt::format("Mcp-Session-Id: {}\r\n", session),
                   fmt::format(R"({{"jsonrpc":"2.0","method":"{}","params":{{{}}}}})", method, params));
  }

  io::Task<std::string> open_session(std::string version) {
    RawPeer peer = connect();
    const std::string body = fmt::format(
        R"({{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}})",
        version);
    co_await peer.write(request("POST", "", body));
    co_await peer.read_until("Mcp-Session-Id: ");
    std::string id = co_await peer.read_until("\r\n");
    id.resize(id.size() - 2);
    co_return id;
  }
};

LOOP_TEST(HttpTest, AQuickResultIsOnePlainAnswer) {
  RawPeer peer = connect();
  co_await peer.write(modern_call("echo", "\"t\""));
  const std::string head = co_await peer.read_until("\r\n\r\n");
  EXPECT_NE(head.find("HTTP/1.1 200"), std::string::npos) << head;
  EXPECT_NE(head.find("application/json"), std::string::npos) << head;
  const std::string body = co_await peer.read_until("}}}}");
  expect_valid("2026-07-28", "tools/call", body);
}

LOOP_TEST(HttpTest, APrintedLineArrivesBeforeTheNextIsPrinted) {
  RawPeer peer = connect();
  co_await peer.write(modern_call("hold", "0"));
  const auto call = co_await host_.held(0);
  call->progress->report("first\n");
  const std::string first = co_await peer.read_until("\n\n");
  EXPECT_NE(first.find("text/event-stream"), std::string::npos) << first;
  EXPECT_NE(data_of(first).find(R"("progressToken":0,"progress":1,"message":"first\n")"), std::string::npos)
      << first;
  expect_valid("2026-07-28", "", data_of(first));
  call->progress->report("second\n");
  const std::string second = co_await peer.read_until("\n\n");
  EXPECT_NE(second.find(R"("progress":2,"message":"second\n")"), std::string::npos) << second;
  call->progress->report("tail");
  call->finish.set();
  const std::string third = co_await peer.read_until("\n\n");
  EXPECT_NE(third.find(R"("progress":3,"message":"tail")"), std::string::npos) << third;
  const std::string result = co_await peer.read_until("\n\n");
  expect_valid("2026-07-28", "tools/call", data_of(result));
  EXPECT_EQ(result.find("id: "), std::string::npos);
  call->progress->report("too late");
  const std::string rest = co_await peer.read_until("0\r\n\r\n");
  EXPECT_EQ(rest, "\r\n0\r\n\r\n");
}

LOOP_TEST(HttpTest, ASilentCallOpensItsStreamAndShowsSignsOfLife) {
  StreamableHttpOptions options;
  options.stream_after = Milliseconds(1);
  options.sign_of_life = Milliseconds(5);
  start(options);
  RawPeer peer = connect();
  co_await peer.write(modern_call("hold"));
  co_await peer.read_until("text/event-stream");
  co_await peer.read_until(": still here\n\n");
  co_await peer.read_until(": still here\n\n");
  const auto call = co_await host_.held(0);
  EXPECT_FALSE(call->call.context.wants_progress);
  call->progress->report("nobody asked");
  call->finish.set();
  const std::string rest = co_await peer.read_until("0\r\n\r\n");
  EXPECT_EQ(rest.find("nobody asked"), std::string::npos);
  EXPECT_NE(rest.find(R"("resultType":"complete")"), std::string::npos);
}

LOOP_TEST(HttpTest, AModernClientThatLeavesCancelsItsCall) {
  std::size_t index = 0;
  for (const std::string token : {"", "1"}) {
    RawPeer peer = connect();
    co_await peer.write(modern_call("hold", token));
    const auto call = co_await host_.held(index++);
    if (!token.empty()) {
      call->progress->report("x");
      co_await peer.read_until("\n\n");
    }
    peer.close();
    auto cancelled = co_await call->cancelled.wait(soon());
    EXPECT_TRUE(cancelled.has_value());
  }
}

LOOP_TEST(HttpTest, ALegacyCallIsCancelledByNotificationAndNothingIsSaid) {
  const std::string session = co_await open_session("2025-11-25");
  RawPeer peer = connect();
  co_await peer.write(legacy_call(session, "hold", "0", "0"));
  const auto call = co_await host_.held(0);
  call->progress->report("x");
  co_await peer.read_until(R"("message":"x")");
  RawPeer second = connect();
  co_await second.write(notification(session, "notifications/cancelled", R"("requestId":"0")"));
  co_await second.read_until("202");
  EXPECT_FALSE(call->cancelled.is_set());
  co_await second.write(notification(session, "notifications/cancelled", R"("requestId":0)"));
  auto cancelled = co_await call->cancelled.wait(soon());
  EXPECT_TRUE(cancelled.has_value());
  const std::string rest = co_await peer.read_until("0\r\n\r\n");
  EXPECT_EQ(rest.find("data:"), std::string::npos) << rest;
}

LOOP_TEST(HttpTest, CancelledBeforeAnythingWasSaid) {
  const std::string session = co_await open_session("2025-11-25");
  RawPeer peer = connect();
  co_await peer.write(legacy_call(session, "hold", "5"));
  [[maybe_unused]] const auto call = co_await host_.held(0);
  RawPeer second = connect();
  co_await second.write(notification(session, "notifications/cancelled", R"("requestId":5)"));
  const std::string head = co_await peer.read_until("\r\n\r\n");
  EXPECT_NE(head.find("text/event-stream"), std::string::npos) << head;
}

LOOP_TEST(HttpTest, ALegacyClientThatLeavesMayComeBackForTheRest) {
  const std::string session = co_await open_session("2025-11-25");
  RawPeer peer = connect();
  co_await peer.write(legacy_call(session, "hold", "1", "\"p\""));
  const auto call = co_await host_.held(0);
  call->progress->report("before");
  co_await peer.read_until("\r\n\r\n");
  const std::string priming = co_await peer.read_until("\n\n");
  EXPECT_NE(priming.find("-0\ndata: \n"), std::string::npos) << priming;
  const std::string event = co_await peer.read_until("\n\n");
  const std::size_t at = event.find("id: ") + 4;
  const std::string last = event.substr(at, event.find('\n', at) - at);
  peer.close();
  call->result.structured["marker"] = "kept";
  call->finish.set();
  auto returned = co_await call->returned.wait(soon());
  EXPECT_TRUE(returned.has_value());
  EXPECT_FALSE(call->cancelled.is_set());

  const std::string headers =
      fmt::format("Mcp-Session-Id: {}\r\nAccept: text/event-stream\r\nLast-Event-ID: {}\r\n", session, last);
  RawPeer again = connect();
  co_await again.write(request("GET", headers, ""));
  const std::string rest = co_await again.read_until("0\r\n\r\n");
  EXPECT_NE(rest.find(R"("marker":"kept")"), std::string::npos) << rest;
  EXPECT_EQ(rest.find("before"), std::string::npos) << rest;
  expect_valid("2025-11-25", "tools/call", data_of(rest));

  const std::string foreign = co_await open_session("2025-11-25");
  RawPeer stranger = connect();
  const std::string stolen =
      fmt::format("Mcp-Session-Id: {}\r\nAccept: text/event-stream\r\nLast-Event-ID: {}\r\n", foreign, last);
  co_await stranger.write(request("GET", stolen, ""));
  const std::string refused = co_await stranger.read_until("\r\n\r\n");
  EXPECT_NE(refused.find("HTTP/1.1 400"), std::string::npos) << refused;
}

LOOP_TEST(HttpTest, OlderClientsGetNoPrimingEvent) {
  const std::string session = co_await open_session("2025-06-18");
  RawPeer peer = connect();
  co_await peer.write(legacy_call(session, "hold", "1", "7"));
  const auto call = co_await host_.held(0);
  call->progress->report("x");
  co_await peer.read_until("\r\n\r\n");
  const std::string first = co_await peer.read_until("\n\n");
  EXPECT_NE(first.find(R"("progressToken":7)"), std::string::npos) << first;
  call->finish.set();
  co_await peer.read_until("0\r\n\r\n");
}

LOOP_TEST(HttpTest, ClientsWithoutStreamsWaitForTheirAnswer) {
  StreamableHttpOptions options;
  options.stream_after = Milliseconds(1);
  start(options);
  const std::string session = co_await open_session("2025-06-18");
  RawPeer peer = connect();
  const std::string headers = fmt::format("Mcp-Session-Id: {}\r\nAccept: application/json\r\n", session);
  co_await peer.write(request(
      "POST", headers,
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold","_meta":{"progressToken":1}}})"));
  const auto call = co_await host_.held(0);
  call->progress->report("x");
  call->finish.set();
  const std::string head = co_await peer.read_until("\r\n\r\n");
  EXPECT_NE(head.find("application/json"), std::string::npos) << head;
}

LOOP_TEST(HttpTest, ABatchIsOneAnswer) {
  const std::string session = co_await open_session("2025-03-26");
  RawPeer peer = connect();
  const std::string call = R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}})";
  const std::string batch = "[" + call + R"(,{"jsonrpc":"2.0","id":2,"method":"ping"}])";
  co_await peer.write(request("POST", fmt::format("Mcp-Session-Id: {}\r\n", session), batch));
  co_await peer.read_until("\r\n\r\n");
  const std::string body = co_await peer.read_until("}]");
  EXPECT_TRUE(body.starts_with("[{")) << body;
}

LOOP_TEST(HttpTest, TheHabitsOfAnOldClientWork) {
  const std::string session = co_await open_session("2025-03-26");
  RawPeer stream = connect();
  const std::string headers = fmt::format("Mcp-Session-Id: {}\r\nAccept: text/event-stream\r\n", session);
  co_await stream.write(request("GET", headers, ""));
  co_await stream.read_until("text/event-stream");
  RawPeer peer = connect();
  co_await peer.write(notification(session, "notifications/initialized", ""));
  co_await peer.read_until("202");
  co_await peer.write(legacy_call(session, "echo", "1"));
  co_await peer.read_until(R"("isError":false)");
  RawPeer last = connect();
  co_await last.write(request("DELETE", fmt::format("Mcp-Session-Id: {}\r\n", session), ""));
  co_await last.read_until("HTTP/1.1 204");
  co_await stream.read_until("0\r\n\r\n");
  co_await peer.write(legacy_call(session, "echo", "2"));
  co_await peer.read_until("HTTP/1.1 404");
}

LOOP_TEST(HttpTest, ADeletedSessionEndsItsRuns) {
  const std::string session = co_await open_session("2025-11-25");
  RawPeer peer = connect();
  co_await peer.write(legacy_call(session, "hold", "1"));
  const auto call = co_await host_.held(0);
  RawPeer last = connect();
  co_await last.write(request("DELETE", fmt::format("Mcp-Session-Id: {}\r\n", session), ""));
  co_await last.read_until("HTTP/1.1 204");
  EXPECT_TRUE(call->cancelled.is_set());
}

LOOP_TEST(HttpTest, AReaderThatNeverReadsHoldsLittleMemory) {
  RawPeer peer = connect();
  co_await peer.write(modern_call("hold", "1"));
  const auto call = co_await host_.held(0);
  for (int i = 0; i < 10'000; ++i) call->progress->report(std::string(4096, 'x'));
  call->finish.set();
  const std::string all = co_await peer.read_until("0\r\n\r\n");
  EXPECT_LT(all.size(), 100'000U);
  EXPECT_NE(all.find(R"("status":"ok")"), std::string::npos);
}

}  // namespace
}  // namespace prims::transport

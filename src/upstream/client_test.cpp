// The client against our own transports and against small servers with the habits of others.
#include "upstream/client.h"

#include <fmt/format.h>

#include "mcp/schema_check.h"
#include "transport/test_http.h"

namespace prims::upstream {
namespace {

using transport::testing::soon;

ToolCallRequest call_of(std::string tool, json::Object arguments = {}) {
  ToolCallRequest request;
  request.tool = std::move(tool);
  request.arguments = std::move(arguments);
  request.deadline = soon();
  return request;
}

std::string structured_text(const Result<mcp::CallOutcome>& outcome) {
  if (!outcome) return outcome.error().message;
  return outcome->structured ? json::write(*outcome->structured) : "nothing";
}

/// Keeps the outcome of a call that runs beside the test.
struct Outcome {
  std::optional<Result<mcp::CallOutcome>> value;
  io::Event done;
};

io::Task<> call_beside(Client* client, ToolCallRequest request, std::shared_ptr<Outcome> outcome) {
  outcome->value = co_await client->call_tool(std::move(request));
  outcome->done.set();
}

class HttpClientTest : public transport::testing::HttpFixture {
 protected:
  io::Task<std::unique_ptr<Client>> connect_as(EraChoice era) {
    ClientOptions options;
    options.era = era;
    HttpTarget target;
    target.url = fmt::format("http://127.0.0.1:{}/mcp", server_->port());
    auto client = co_await Client::connect(std::move(target), options);
    if (!client) throw std::runtime_error(client.error().message);
    co_return *std::move(client);
  }
};

LOOP_TEST(HttpClientTest, ListsAndCallsInBothEras) {
  for (const EraChoice era : {EraChoice::automatic, EraChoice::legacy}) {
    const auto client = co_await connect_as(era);
    EXPECT_EQ(client->server().name, "prims");
    EXPECT_EQ(client->server().dialect.version, era == EraChoice::legacy ? "2025-11-25" : "2026-07-28");
    auto tools = co_await client->list_tools(soon());
    EXPECT_EQ(tools.value().size(), 2U);
    json::Object arguments{{"x", 1}};
    auto echo = co_await client->call_tool(call_of("echo", std::move(arguments)));
    EXPECT_EQ(structured_text(echo), R"({"x":1,"status":"ok"})");
    auto unknown = co_await client->call_tool(call_of("nope"));
    EXPECT_EQ(unknown.error().kind, Kind::invalid_input);
    co_await client->close();
  }
}

LOOP_TEST(HttpClientTest, MirrorsAnnotatedArguments) {
  const auto client = co_await connect_as(EraChoice::automatic);
  json::Object arguments{{"region", "Zürich "}};
  auto echo = co_await client->call_tool(call_of("echo", std::move(arguments)));
  EXPECT_EQ(structured_text(echo), R"({"region":"Zürich ","status":"ok"})");
  co_await client->close();
}

LOOP_TEST(HttpClientTest, ProgressArrivesWhileTheCallRuns) {
  for (const EraChoice era : {EraChoice::automatic, EraChoice::legacy}) {
    const auto client = co_await connect_as(era);
    const std::size_t index = host_.calls.size();
    const auto outcome = std::make_shared<Outcome>();
    const auto heard = std::make_shared<std::string>();
    const io::Event first;
    ToolCallRequest request = call_of("hold");
    request.on_progress = [heard, first](const mcp::ReceivedProgress& progress) {
      *heard += progress.message;
      first.set();
    };
    io::TaskScope scope(loop_.executor());
    scope.spawn(call_beside(client.get(), std::move(request), outcome), "call");
    const auto held = co_await host_.held(index);
    held->progress->report("one ");
    auto arrived = co_await first.wait(soon());
    EXPECT_TRUE(arrived.has_value());
    held->progress->report("two");
    held->finish.set();
    auto joined = co_await scope.join(soon());
    EXPECT_TRUE(joined.has_value());
    EXPECT_EQ(*heard, "one two");
    EXPECT_EQ(structured_text(*outcome->value), R"({"status":"ok"})");
    co_await client->close();
  }
}

LOOP_TEST(HttpClientTest, CancelAndDeadlineEndTheRunOnTheServer) {
  for (const EraChoice era : {EraChoice::automatic, EraChoice::legacy}) {
    for (const bool by_deadline : {false, true}) {
      const auto client = co_await connect_as(era);
      const std::size_t index = host_.calls.size();
      const auto outcome = std::make_shared<Outcome>();
      ToolCallRequest request = call_of("hold");
      request.cancellation = std::make_shared<io::Cancellation>();
      const auto cancellation = request.cancellation;
      if (by_deadline) request.deadline = Deadline::after(Milliseconds(300));
      io::TaskScope scope(loop_.executor());
      scope.spawn(call_beside(client.get(), std::move(request), outcome), "call");
      const auto held = co_await host_.held(index);
      if (!by_deadline) cancellation->request();
      auto cancelled = co_await held->cancelled.wait(soon());
      EXPECT_TRUE(cancelled.has_value());
      auto joined = co_await scope.join(soon());
      EXPECT_TRUE(joined.has_value());
      EXPECT_EQ(outcome->value->error().kind, by_deadline ? Kind::timed_out : Kind::cancelled);
      co_await client->close();
    }
  }
}

LOOP_TEST(HttpClientTest, AForgottenSessionIsOpenedAgain) {
  transport::StreamableHttpOptions options;
  options.sessions.most = 1;
  start(options);
  const auto first = co_await connect_as(EraChoice::legacy);
  const auto second = co_await connect_as(EraChoice::legacy);
  auto echo = co_await first->call_tool(call_of("echo"));
  EXPECT_EQ(structured_text(echo), R"({"status":"ok"})");
  co_await first->close();
  co_await second->close();
}

/// An HTTP server with the habits of others; what it was sent is kept.
class OddServer {
 public:
  explicit OddServer(io::Executor executor, bool loops) {
    auto handler = [this, loops](http::Request request, http::Responder responder) {
      return loops ? circle(std::move(request), std::move(responder))
                   : answer(this, std::move(request), std::move(responder));
    };
    const std::vector<http::ListenAddress> addresses = {
        {"127.0.0.1", 0, http::ListenAddress::Need::required}};
    server_ = http::Server::listen(executor, addresses, {}, handler).value();
  }
  std::string url() const { return server_->urls().front() + "/mcp"; }
  std::vector<std::string> seen;

 private:
  static http::Response json_response(int status, std::string body) {
    http::Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json");
    response.body = std::move(body);
    return response;
  }
  static http::Response stream_response(std::string body) {
    http::Response response;
    response.headers.set("Content-Type", "text/event-stream");
    response.body = std::move(body);
    return response;
  }

  /// Legacy only, refuses the probe with a code of its own, breaks its stream and goes on after a GET.
  static io::Task<> answer(OddServer* self, http::Request request, http::Responder responder) {
    self->seen.push_back(request.method + " " +
                         std::string(request.headers.get("Last-Event-ID").value_or("")));
    http::Response response = json_response(202, "");
    if (request.body.find("server/discover") != std::string::npos) {
      response = json_response(
          400, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}})");
    } else if (request.body.find("\"initialize\"") != std::string::npos) {
      response = json_response(
          200,
          R"({"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"odd","version":"1"}}})");
      response.headers.set("Mcp-Session-Id", "s1");
    } else if (request.headers.get("Mcp-Session-Id") != "s1" ||
               request.headers.get("MCP-Protocol-Version") != "2025-03-26") {
      response = json_response(400, "");
    } else if (request.body.find("tools/call") != std::string::npos) {
      response = stream_response("id: e1\r\nretry: 1\r\ndata:\r\n\r\n");
    } else if (request.method == "GET") {
      response = stream_response(
          "data: {\"jsonrpc\":\"2.0\",\"id\":\"srv\",\"method\":\"ping\"}\n\nid: e2\ndata: "
          "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}}"
          "\n\n");
    }
    [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
  }

  /// A modern server whose tool list never ends.
  static io::Task<> circle(http::Request request, http::Responder responder) {
    const json::Value value = json::parse(request.body).value();
    const std::string id = json::write(value.get_object().at("id"));
    const bool list = json::string_field(value.get_object(), "method") == "tools/list";
    const std::string result = list ? R"({"resultType":"complete","tools":[],"nextCursor":""})"
                                    : R"({"resultType":"complete","supportedVersions":["2026-07-28"]})";
    http::Response response =
        json_response(200, fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{}}})", id, result));
    [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
  }

  std::unique_ptr<http::Server> server_;
};

LOOP_TEST(HttpClientTest, ALegacyServerWithABrokenStreamIsFollowed) {
  OddServer odd(loop_.executor(), false);
  HttpTarget target;
  target.url = odd.url();
  auto client = co_await Client::connect(std::move(target), ClientOptions());
  EXPECT_EQ(client.value()->server().dialect.version, "2025-03-26");
  auto outcome = co_await (*client)->call_tool(call_of("any"));
  EXPECT_EQ(outcome.value().content.size(), 1U);
  co_await (*client)->close();
  EXPECT_EQ(odd.seen,
            (std::vector<std::string>{"POST ", "POST ", "POST ", "POST ", "GET e1", "POST ", "DELETE "}));
}

LOOP_TEST(HttpClientTest, AToolListThatGoesInCirclesIsStopped) {
  OddServer odd(loop_.executor(), true);
  HttpTarget target;
  target.url = odd.url();
  auto client = co_await Client::connect(std::move(target), ClientOptions());
  auto tools = co_await client.value()->list_tools(soon());
  EXPECT_EQ(tools.error().kind, Kind::unavailable);
  co_await (*client)->close();
}

LOOP_TEST(HttpClientTest, NobodyThereIsAnError) {
  HttpTarget target;
  target.url = "http://127.0.0.1:1/mcp";
  auto client = co_await Client::connect(std::move(target), ClientOptions());
  EXPECT_EQ(client.error().kind, Kind::unavailable);
}

class StdioClientTest : public ::testing::Test {
 protected:
  io::Task<Result<std::unique_ptr<Client>>> connect(std::string role, EraChoice era = EraChoice::automatic) {
    ClientOptions options;
    options.era = era;
    options.probe_time = role == "silent" ? Milliseconds(100) : Milliseconds(10'000);
    Command command;
    command.argv = {PRIMS_TEST_SERVER, role};
    auto client = co_await Client::connect(std::move(command), options);
    co_return client;
  }
  io::Loop loop_;
};

LOOP_TEST(StdioClientTest, CallsWithProgressInBothEras) {
  for (const EraChoice era : {EraChoice::automatic, EraChoice::legacy}) {
    auto client = co_await connect("modern", era);
    EXPECT_EQ(client.value()->server().version, "9");
    auto tools = co_await (*client)->list_tools(soon());
    EXPECT_EQ(tools.value().size(), 4U);
    std::string heard;
    ToolCallRequest request = call_of("say", json::Object{{"x", "ü"}});
    request.on_progress = [&heard](const mcp::ReceivedProgress& progress) { heard += progress.message; };
    auto outcome = co_await (*client)->call_tool(std::move(request));
    EXPECT_EQ(heard, "said");
    EXPECT_TRUE(structured_text(outcome).starts_with(R"({"x":"ü",)")) << structured_text(outcome);
    co_await (*client)->close();
  }
}

LOOP_TEST(StdioClientTest, CancelledAndLateCallsEndOnTheServer) {
  auto client = co_await connect("modern");
  ToolCallRequest late = call_of("wait");
  late.deadline = Deadline::after(Milliseconds(50));
  auto timed_out = co_await client.value()->call_tool(std::move(late));
  EXPECT_EQ(timed_out.error().kind, Kind::timed_out);
  ToolCallRequest cancelled = call_of("wait");
  cancelled.cancellation = std::make_shared<io::Cancellation>();
  cancelled.cancellation->request();
  auto outcome = co_await (*client)->call_tool(std::move(cancelled));
  EXPECT_EQ(outcome.error().kind, Kind::cancelled);
  // The first answer follows the cancelled tool's wake-up, the second its end. What was cancelled before it
  // was sent never reached the server.
  [[maybe_unused]] auto first = co_await (*client)->call_tool(call_of("echo"));
  auto after = co_await (*client)->call_tool(call_of("echo"));
  EXPECT_NE(structured_text(after).find(R"("cancelled_before":1)"), std::string::npos)
      << structured_text(after);
  co_await (*client)->close();
}

LOOP_TEST(StdioClientTest, AServerThatDiesIsStartedAgainForTheNextCall) {
  auto client = co_await connect("modern");
  auto died = co_await client.value()->call_tool(call_of("die"));
  EXPECT_EQ(died.error().kind, Kind::unavailable);
  auto again = co_await (*client)->call_tool(call_of("echo"));
  EXPECT_TRUE(again.has_value()) << structured_text(again);
  co_await (*client)->close();
}

LOOP_TEST(StdioClientTest, OldServersAreFoundWhateverTheProbeDoesToThem) {
  for (const std::string role : {"silent", "exits"}) {
    auto client = co_await connect(role);
    EXPECT_EQ(client.value()->server().name, "old");
    EXPECT_EQ((*client)->server().dialect.version, "2024-11-05");
    auto tools = co_await (*client)->list_tools(soon());
    EXPECT_TRUE(tools.has_value());
    co_await (*client)->close();
  }
}

LOOP_TEST(StdioClientTest, AServerThatFailsIsQuoted) {
  auto client = co_await connect("complains");
  EXPECT_FALSE(client.has_value());
  EXPECT_EQ(client.error().kind, Kind::unavailable);
  EXPECT_NE(client.error().message.find("the key is missing"), std::string::npos) << client.error().message;
  Command command;
  command.argv = {"no-such-program-here"};
  auto missing = co_await Client::connect(std::move(command), ClientOptions());
  EXPECT_EQ(missing.error().kind, Kind::not_found);
}

}  // namespace
}  // namespace prims::upstream

// The server as a peer on a raw socket sees it.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "http/server.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/wait.h"

namespace prims::http {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kPatienceMs = 20'000;

/// A plain blocking client.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  bool connected() const { return connected_; }
  void send(std::string_view bytes) {
    ASSERT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }
  void shut_down_sending() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }

  /// Everything until the server closes.
  std::string read_to_end() {
    while (read_some()) {
    }
    return std::exchange(received_, {});
  }

  /// Up to and including `mark`; what came after it stays for the next call.
  std::string read_until(std::string_view mark) {
    std::size_t found;
    while ((found = received_.find(mark)) == std::string::npos) {
      if (!read_some()) return "(closed after) " + received_;
    }
    std::string part = received_.substr(0, found + mark.size());
    received_.erase(0, part.size());
    return part;
  }

 private:
  bool read_some() {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, kPatienceMs) != 1) return false;
    char buffer[65536];
    const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  UniqueFd fd_;
  bool connected_ = false;
  std::string received_;
};

io::Task<> echo(Request request, Responder responder) {
  Response response;
  response.headers.add("Content-Type", "text/plain");
  response.body = request.method + " " + request.target + " [" + request.body + "]";
  [[maybe_unused]] const auto sent = co_await responder.send(std::move(response));
}

/// A server on its own thread; the test talks to it with blocking sockets.
class ServerTest : public testing::Test {
 protected:
  void start(Handler handler, ServerLimits limits = {}) {
    std::vector<ListenAddress> addresses{{.host = "127.0.0.1"},
                                         {.host = "::1", .need = ListenAddress::Need::if_available}};
    auto made = Server::listen(loop_.executor(), addresses, limits, std::move(handler));
    ASSERT_TRUE(made.has_value()) << made.error().message;
    server_ = std::move(*made);
    port_ = server_->port();
    thread_ = std::jthread([this] { loop_.run(); });
  }

  void TearDown() override {
    loop_.post([this] {
      server_.reset();
      loop_.stop();
    });
    if (thread_.joinable()) thread_.join();
  }

  std::string exchange(std::string_view bytes) {
    RawClient client(port_);
    client.send(bytes);
    client.shut_down_sending();
    return client.read_to_end();
  }

  io::Loop loop_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

struct Case {
  const char* name;
  std::string bytes;
  std::string answer;  // how the answer begins
  std::string body;    // what it contains
};

TEST_F(ServerTest, AcceptsWellFormedRequests) {
  start(echo);
  const Case cases[] = {
      {"plain", "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n", "GET /a?b=c []"},
      {"length", "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200", "[hello]"},
      {"zero length", "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200", "[]"},
      {"chunked",
       "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
       "HTTP/1.1 200", "[abcde]"},
      {"chunk extension and trailer",
       "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
       "HTTP/1.1 200", "[abc]"},
      {"old version", "GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200", "Connection: close"},
      {"leading blank line", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "GET / []"},
      {"unknown method", "BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "BREW /pot []"},
      {"absolute form is left to the handler", "GET http://h/p HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200",
       "GET http://h/p []"},
      {"close wished", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 200",
       "Connection: close"},
      {"head only", "HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "Content-Length: 10\r\n\r\n"},
  };
  for (const Case& c : cases) {
    const std::string answer = exchange(c.bytes);
    EXPECT_THAT(answer, StartsWith(c.answer)) << c.name;
    EXPECT_THAT(answer, HasSubstr(c.body)) << c.name;
  }
  EXPECT_THAT(exchange("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n"), testing::EndsWith("\r\n\r\n"));
}

TEST_F(ServerTest, RefusesWhatTwoPartiesCouldReadDifferently) {
  start(echo);
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const Case cases[] = {
      {"length and chunked", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "HTTP/1.1 400", ""},
      {"chunked and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
       "HTTP/1.1 400", ""},
      {"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "HTTP/1.1 400", ""},
      {"same length twice", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 400", ""},
      {"list of lengths", post + "Content-Length: 5, 5\r\n\r\nhello", "HTTP/1.1 400", ""},
      {"signed length", post + "Content-Length: +5\r\n\r\nhello", "HTTP/1.1 400", ""},
      {"negative length", post + "Content-Length: -1\r\n\r\n", "HTTP/1.1 400", ""},
      {"hexadecimal length", post + "Content-Length: 0x5\r\n\r\nhello", "HTTP/1.1 400", ""},
      {"empty length", post + "Content-Length: \r\n\r\n", "HTTP/1.1 400", ""},
      {"overflowing length", post + "Content-Length: 99999999999999999999999\r\n\r\n", "HTTP/1.1 400", ""},
      {"unknown coding", post + "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 400", ""},
      {"coding list", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400", ""},
      {"coding twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "HTTP/1.1 400", ""},
      {"misspelt coding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400", ""},
      {"tab before coding", post + "Transfer-Encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n", "HTTP/1.1 400", ""},
      {"space before colon", post + "Content-Length : 5\r\n\r\nhello", "HTTP/1.1 400", ""},
      {"folded line", post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400", ""},
      {"field before any name", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", "HTTP/1.1 400", ""},
      {"bare line feeds", "GET / HTTP/1.1\nHost: x\n\n", "HTTP/1.1 400", ""},
      {"bare carriage return", "GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n", "HTTP/1.1 400", ""},
      {"zero byte", std::string("GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n", 30), "HTTP/1.1 400", ""},
      {"coding in an old version", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "HTTP/1.1 400", ""},
      {"bad chunk size", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", "HTTP/1.1 400",
       ""},
      {"chunk size with sign", post + "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n",
       "HTTP/1.1 400", ""},
      {"chunk size with prefix", post + "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
       "HTTP/1.1 400", ""},
      {"chunk longer than said", post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
       "HTTP/1.1 400", ""},
      {"bare feed in chunk head", post + "Transfer-Encoding: chunked\r\n\r\n3;\nx\r\nabc\r\n0\r\n\r\n",
       "HTTP/1.1 400", ""},
      {"no host", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "Host"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "HTTP/1.1 400", "Host"},
      {"space in target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 ", ""},
      {"no target", "GET  HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400", ""},
      {"later version", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", "HTTP/1.1 505", ""},
      {"not HTTP", "\x16\x03\x01\x02", "HTTP/1.1 400", ""},
  };
  for (const Case& c : cases) {
    const std::string answer = exchange(c.bytes + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(answer, StartsWith(c.answer)) << c.name;
    EXPECT_THAT(answer, HasSubstr(c.body)) << c.name;
    EXPECT_THAT(answer, HasSubstr("Connection: close")) << c.name;
    EXPECT_THAT(answer, testing::Not(HasSubstr("200 OK"))) << c.name;
  }
}

TEST_F(ServerTest, KeepsTheLimits) {
  ServerLimits limits;
  limits.header = kib(4);
  limits.body = kib(64);
  start(echo, limits);
  const std::string big_field = "X: " + std::string(5000, 'x') + "\r\n";
  EXPECT_THAT(exchange("GET / HTTP/1.1\r\nHost: x\r\n" + big_field + "\r\n"), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(exchange("GET /" + std::string(20000, 'x')), StartsWith("HTTP/1.1 431"));
  std::string many_fields;
  for (int i = 0; i < 200; ++i) many_fields += "a: b\r\n";
  EXPECT_THAT(exchange("GET / HTTP/1.1\r\nHost: x\r\n" + many_fields + "\r\n"), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  const std::string chunk = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_THAT(exchange(chunked + chunk + chunk + chunk + chunk + "1\r\nx\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(exchange(chunked + chunk + chunk + chunk + chunk + "0\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(exchange(chunked + "1;" + std::string(70000, 'e')), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(exchange(chunked + "0\r\nT: " + std::string(70000, 't')), StartsWith("HTTP/1.1 400"));
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  start(echo);
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    bytes += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab";
  }
  const std::string answers = exchange(bytes);
  std::size_t position = 0;
  for (int i = 0; i < 50; ++i) {
    position = answers.find("POST /" + std::to_string(i) + " [ab]", position);
    ASSERT_NE(position, std::string::npos) << i;
  }
}

TEST_F(ServerTest, ReadsARequestThatArrivesByteByByte) {
  start(echo);
  RawClient client(port_);
  for (const char c : std::string(
           "POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")) {
    client.send({&c, 1});
  }
  EXPECT_THAT(client.read_until("]"), HasSubstr("[abc]"));
}

TEST_F(ServerTest, AsksForABodyThatWaitsForPermission) {
  start(echo);
  RawClient client(port_);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_THAT(client.read_until("]"), HasSubstr("[abc]"));
}

TEST_F(ServerTest, RefusesAnExpectationItDoesNotKnow) {
  start(echo);
  const std::string answer =
      exchange("POST / HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 417"));
}

TEST_F(ServerTest, EndsSlowAndIdleConnections) {
  ServerLimits limits;
  limits.header_time = 30ms;
  limits.body_time = 30ms;
  limits.idle_time = 30ms;
  start(echo, limits);
  RawClient idle(port_);
  EXPECT_EQ(idle.read_to_end(), "");
  RawClient slow_head(port_);
  slow_head.send("GET / HT");
  EXPECT_THAT(slow_head.read_to_end(), StartsWith("HTTP/1.1 408"));
  RawClient slow_body(port_);
  slow_body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
  EXPECT_THAT(slow_body.read_to_end(), StartsWith("HTTP/1.1 408"));
  RawClient kept(port_);
  kept.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(kept.read_to_end(), StartsWith("HTTP/1.1 200"));
}

io::Task<> flood(Responder responder, std::promise<void>* ended) {
  Response head;
  auto written = co_await responder.open(std::move(head));
  while (written) {
    written = co_await responder.write(std::string(100'000, 'x'));
  }
  ended->set_value();
}

TEST_F(ServerTest, ClosesOnAReaderThatDoesNotRead) {
  ServerLimits limits;
  limits.write_time = 50ms;
  std::promise<void> ended;
  start([&](Request, Responder responder) { return flood(std::move(responder), &ended); }, limits);
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ended.get_future().wait();
}

TEST_F(ServerTest, RefusesConnectionsBeyondTheLimit) {
  ServerLimits limits;
  limits.connections_per_peer = 1;
  start(echo, limits);
  RawClient first(port_);
  first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  first.read_until("]");
  RawClient second(port_);
  EXPECT_THAT(second.read_to_end(), StartsWith("HTTP/1.1 503"));
  first.send("GET /again HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(first.read_until("]"), HasSubstr("/again"));
}

struct Staged {
  io::Event go_on;
  std::atomic<bool> closed_seen = false;
};

io::Task<> stream_in_stages(Staged* staged, Responder responder) {
  Response head;
  head.headers.add("Content-Type", "text/event-stream");
  head.body = "data: first\n\n";
  [[maybe_unused]] auto opened = co_await responder.open(std::move(head));
  [[maybe_unused]] auto go = co_await staged->go_on.wait();
  [[maybe_unused]] auto written = co_await responder.write("data: second\n\n");
  [[maybe_unused]] auto nothing = co_await responder.write("");
  [[maybe_unused]] auto finished = co_await responder.finish();
}

TEST_F(ServerTest, StreamsPieceByPieceAndKeepsTheConnection) {
  Staged staged;
  start([&](Request, Responder responder) { return stream_in_stages(&staged, std::move(responder)); });
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string first = client.read_until("data: first\n\n\r\n");
  EXPECT_THAT(first, HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(first, HasSubstr("\r\n\r\nd\r\ndata: first"));
  loop_.post([&] { staged.go_on.set(); });
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "e\r\ndata: second\n\n\r\n0\r\n\r\n");
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_until("0\r\n\r\n"), HasSubstr("data: second"));
}

TEST_F(ServerTest, StreamsToOldClientsUntilClose) {
  Staged staged;
  staged.go_on.set();
  start([&](Request, Responder responder) { return stream_in_stages(&staged, std::move(responder)); });
  const std::string answer = exchange("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, testing::EndsWith("\r\n\r\ndata: first\n\ndata: second\n\n"));
}

io::Task<> wait_for_close(Staged* staged, Responder responder) {
  io::Event closed;
  responder.closed()->on_request([closed] { closed.set(); });
  const auto seen = co_await closed.wait(Deadline::after(20s));
  staged->closed_seen = seen.has_value();
  staged->go_on.set();
  Response answer;
  [[maybe_unused]] auto late = co_await responder.send(std::move(answer));
}

TEST_F(ServerTest, TellsARunningHandlerThatThePeerHasGone) {
  Staged staged;
  start([&](Request, Responder responder) { return wait_for_close(&staged, std::move(responder)); });
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /pipelined HTTP/1.1\r\nHost: x\r\n\r\n");
  client.close();
  std::promise<void> ended;
  loop_.spawn(
      [](Staged* what, std::promise<void>* done) -> io::Task<> {
        [[maybe_unused]] auto went = co_await what->go_on.wait(Deadline::after(20s));
        done->set_value();
      }(&staged, &ended),
      "test");
  ended.get_future().wait();
  EXPECT_TRUE(staged.closed_seen);
}

TEST_F(ServerTest, KeepsBytesThatArriveWhileAHandlerRuns) {
  Staged staged;
  start([&](Request request, Responder responder) -> io::Task<> {
    if (request.target == "/second") return echo(std::move(request), std::move(responder));
    return stream_in_stages(&staged, std::move(responder));
  });
  RawClient client(port_);
  client.send("GET /first HTTP/1.1\r\nHost: x\r\n\r\n");
  client.read_until("data: first\n\n");
  client.send("GET /second HTTP/1.1\r\nHost: x\r\n\r\n");
  loop_.post([&] { staged.go_on.set(); });
  EXPECT_THAT(client.read_until("]"), HasSubstr("GET /second []"));
}

io::Task<> misbehave(Request request, Responder responder) {
  if (request.target == "/throw") throw std::runtime_error("on purpose");
  if (request.target == "/inject") {
    Response response;
    response.headers.add("X", "a\r\nSet-Cookie: b");
    const auto refused = co_await responder.send(std::move(response));
    EXPECT_FALSE(refused.has_value());
  }
  if (request.target == "/half") {
    Response head;
    head.body = "half";
    [[maybe_unused]] auto opened = co_await responder.open(std::move(head));
    throw std::runtime_error("on purpose");
  }
}

TEST_F(ServerTest, MakesAnErrorOfAHandlerThatDoesNotAnswer) {
  start(misbehave);
  EXPECT_THAT(exchange("GET /silent HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(exchange("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(exchange("GET /inject HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(exchange("GET /half HTTP/1.1\r\nHost: x\r\n\r\n"), testing::Not(HasSubstr("0\r\n\r\n")));
}

io::Task<> declare_length(Request request, Responder responder) {
  Response head;
  head.headers.add("Content-Length", "6");
  head.body = "abc";
  [[maybe_unused]] auto opened = co_await responder.open(std::move(head));
  if (request.target == "/short") co_return;
  [[maybe_unused]] auto written = co_await responder.write(request.target == "/long" ? "defg" : "def");
}

TEST_F(ServerTest, StreamsABodyOfDeclaredLength) {
  start(declare_length);
  EXPECT_THAT(exchange("GET /exact HTTP/1.1\r\nHost: x\r\n\r\n"),
              testing::EndsWith("Content-Length: 6\r\n\r\nabcdef"));
  EXPECT_THAT(exchange("HEAD /exact HTTP/1.1\r\nHost: x\r\n\r\n"),
              testing::EndsWith("Content-Length: 6\r\n\r\n"));
  EXPECT_THAT(exchange("GET /short HTTP/1.1\r\nHost: x\r\n\r\n"), testing::EndsWith("abc"));
  EXPECT_THAT(exchange("GET /long HTTP/1.1\r\nHost: x\r\n\r\n"), testing::EndsWith("abc"));
}

io::Task<> drain_then_note(Server* server, Deadline deadline, std::promise<void>* drained) {
  co_await server->drain(deadline);
  drained->set_value();
}

TEST_F(ServerTest, DrainsGracefully) {
  Staged staged;
  start([&](Request, Responder responder) { return stream_in_stages(&staged, std::move(responder)); });
  RawClient idle(port_);
  RawClient busy(port_);
  busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  busy.read_until("data: first\n\n");
  std::promise<void> drained;
  loop_.spawn(drain_then_note(server_.get(), Deadline::after(20s), &drained), "drain");
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_FALSE(RawClient(port_).connected());
  loop_.post([&] { staged.go_on.set(); });
  EXPECT_THAT(busy.read_to_end(), testing::EndsWith("data: second\n\n\r\n0\r\n\r\n"));
  busy.close();
  drained.get_future().wait();
}

TEST_F(ServerTest, StopsHardAtTheDrainDeadline) {
  Staged staged;
  start([&](Request, Responder responder) { return wait_for_close(&staged, std::move(responder)); });
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::promise<void> drained;
  loop_.spawn(drain_then_note(server_.get(), Deadline::after(50ms), &drained), "drain");
  drained.get_future().wait();
  EXPECT_THAT(client.read_to_end(), testing::Not(HasSubstr("200")));
}

TEST(ServerListen, SaysWhichAddressIsTakenAndSharesAFreePort) {
  io::Loop loop;
  const std::vector<ListenAddress> both{{.host = "127.0.0.1"},
                                        {.host = "::1", .need = ListenAddress::Need::if_available}};
  auto first = Server::listen(loop.executor(), both, {}, echo);
  ASSERT_TRUE(first.has_value());
  for (const std::string& url : (*first)->urls()) {
    EXPECT_THAT(url, testing::EndsWith(":" + std::to_string((*first)->port())));
  }
  const std::vector<ListenAddress> taken{{.host = "127.0.0.1", .port = (*first)->port()}};
  auto second = Server::listen(loop.executor(), taken, {}, echo);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind, Kind::unavailable);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string((*first)->port())));
}

}  // namespace
}  // namespace prims::http

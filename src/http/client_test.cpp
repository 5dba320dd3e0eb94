#include "http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>

#include "http/server.h"
#include "http/sse.h"
#include "http/test_peer.h"
#include "io/loop.h"

namespace prims::http {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::HasSubstr;
namespace asio = boost::asio;

constexpr auto kPlenty = 20s;

ClientRequest get(const std::string& url) {
  ClientRequest request;
  request.url = *parse_url(url);
  request.deadline = Deadline::after(kPlenty);
  return request;
}

/// Status and body, or the error's kind and message.
io::Task<std::string> fetch(Client* client, ClientRequest request) {
  auto response = co_await client->send(std::move(request));
  if (!response) co_return "error: " + response.error().message;
  const std::string status = std::to_string(response->status());
  auto body = co_await response->read_all(mib(1), Deadline::after(kPlenty));
  if (!body) co_return status + " error: " + body.error().message;
  co_return status + " " + *body;
}

TEST(Client, ReadsEveryKindOfBody) {
  struct Case {
    const char* name;
    TestPeer::Answer answer;
    const char* expected;
  };
  using enum TestPeer::After;
  const Case cases[] = {
      {"length", {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"}, "200 hello"},
      {"chunked",
       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"},
       "200 abcde"},
      {"until close", {"HTTP/1.1 200 OK\r\n\r\nto the end", close}, "200 to the end"},
      {"old version", {"HTTP/1.0 404 Not Found\r\n\r\nno", close}, "404 no"},
      {"none", {"HTTP/1.1 204 No Content\r\n\r\n"}, "204 "},
      {"not modified", {"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n"}, "304 "},
      {"interim",
       {"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
       "200 ok"},
      {"cut length", {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", close}, "200 error"},
      {"cut chunk", {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", close}, "200 error"},
      {"cut head", {"HTTP/1.1 200 OK\r\nConte", close}, "error"},
      {"garbage", {"SSH-2.0-OpenSSH\r\n\r\n", close}, "error"},
      {"both framings",
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", close},
       "error"},
      {"endless head", {"HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x'), close}, "error"},
      {"too large for the caller",
       {"HTTP/1.1 200 OK\r\n\r\n" + std::string(2'000'000, 'x'), close},
       "200 error"},
  };
  for (const Case& c : cases) {
    io::Loop loop;
    TestPeer peer({c.answer});
    Client client;
    EXPECT_THAT(loop.run_until_done(fetch(&client, get(peer.url("/")))), testing::StartsWith(c.expected))
        << c.name;
  }
}

TEST(Client, SendsWhatItIsTold) {
  io::Loop loop;
  TestPeer peer({{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}});
  Client client;
  ClientRequest request = get(peer.url("/a?b"));
  request.url.user_info = "user:p%40ss";
  request.headers.add("Accept", "text/html");
  request.method = "HEAD";
  EXPECT_EQ(loop.run_until_done(fetch(&client, std::move(request))), "200 ");
  EXPECT_EQ(peer.heads().at(0), "HEAD /a?b HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(peer.port()) +
                                    "\r\nAccept: text/html\r\nAuthorization: Basic dXNlcjpwQHNz\r\n\r\n");
}

TEST(Client, RefusesToBeUsedForInjection) {
  io::Loop loop;
  Client client;
  ClientRequest field = get("http://127.0.0.1:1/");
  field.headers.add("X", "a\r\nB: c");
  EXPECT_THAT(loop.run_until_done(fetch(&client, std::move(field))), HasSubstr("malformed"));
  ClientRequest target = get("http://127.0.0.1:1/");
  target.url.target = "/ HTTP/1.1\r\nX: y";
  EXPECT_THAT(loop.run_until_done(fetch(&client, std::move(target))), HasSubstr("malformed"));
}

TEST(Client, KeepsConnectionsAndRepeatsAGetOnADeadOne) {
  io::Loop loop;
  using enum TestPeer::After;
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  TestPeer peer({{ok}, {ok}, {"", close}, {ok}});
  Client client;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(loop.run_until_done(fetch(&client, get(peer.url("/")))), "200 ok") << i;
  EXPECT_EQ(peer.accepted(), 2);
}

TEST(Client, DoesNotRepeatAPost) {
  io::Loop loop;
  using enum TestPeer::After;
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  TestPeer peer({{ok}, {"", close}, {ok}});
  Client client;
  EXPECT_EQ(loop.run_until_done(fetch(&client, get(peer.url("/")))), "200 ok");
  ClientRequest post = get(peer.url("/"));
  post.method = "POST";
  EXPECT_THAT(loop.run_until_done(fetch(&client, std::move(post))), HasSubstr("error"));
  EXPECT_EQ(peer.accepted(), 1);
}

TEST(Client, GivesUpAtItsDeadline) {
  io::Loop loop;
  TestPeer peer({{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"}});
  TestPeer silent({{""}});
  Client client;
  ClientRequest request = get(silent.url("/"));
  request.deadline = Deadline::after(30ms);
  const auto late = loop.run_until_done(client.send(std::move(request)));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind, Kind::timed_out);
  auto response = loop.run_until_done(client.send(get(peer.url("/"))));
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(loop.run_until_done(response->read_some(Deadline::after(kPlenty))).value(), "hel");
  const auto stalled = loop.run_until_done(response->read_some(Deadline::after(30ms)));
  ASSERT_FALSE(stalled.has_value());
  EXPECT_EQ(stalled.error().kind, Kind::timed_out);
}

TEST(Client, AsksTheFilterAboutTheAddressItDials) {
  io::Loop loop;
  TestPeer peer({{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}});
  Client client;
  std::vector<std::string> seen;
  ClientRequest request = get("http://localhost:" + std::to_string(peer.port()) + "/");
  request.allow_address = [&](const Address& address) -> Result<> {
    seen.push_back(to_string(address));
    return fail(Kind::denied, "not this one");
  };
  const auto denied = loop.run_until_done(client.send(request));
  ASSERT_FALSE(denied.has_value());
  EXPECT_EQ(denied.error().kind, Kind::denied);
  EXPECT_THAT(seen, testing::Contains("127.0.0.1"));
  EXPECT_EQ(peer.accepted(), 0);
  request.allow_address = [](const Address&) { return Result<>(); };
  EXPECT_EQ(loop.run_until_done(fetch(&client, request)), "200 ok");
}

TEST(Client, SaysWhyItCannotConnect) {
  io::Loop loop;
  Client client;
  std::uint16_t unused_port = 0;
  {
    const TestPeer gone({});
    unused_port = gone.port();
  }
  const std::string origin = "http://127.0.0.1:" + std::to_string(unused_port);
  EXPECT_THAT(loop.run_until_done(fetch(&client, get(origin))), HasSubstr("Connection refused"));
  EXPECT_THAT(loop.run_until_done(fetch(&client, get("http://no-such-host.invalid/"))),
              HasSubstr("cannot resolve no-such-host.invalid"));
}

io::Task<> serve_events(Request, Responder responder) {
  Response head;
  head.headers.add("Content-Type", "text/event-stream");
  [[maybe_unused]] auto opened = co_await responder.open(std::move(head));
  for (int i = 0; i < 3; ++i) {
    SseEvent event;
    event.data = std::to_string(i);
    [[maybe_unused]] auto written = co_await responder.write(encode(event));
  }
}

io::Task<std::string> read_events(Client* client, std::string url) {
  ClientRequest request = get(url);
  auto response = co_await client->send(std::move(request));
  if (!response) co_return response.error().message;
  SseReader reader(std::move(*response));
  std::string all;
  for (;;) {
    auto event = co_await reader.next(Deadline::after(kPlenty));
    if (!event || !*event) co_return all;
    all += (*event)->data + ";";
  }
}

TEST(Client, ReadsEventsOfOurOwnServer) {
  io::Loop loop;
  auto server = Server::listen(loop.executor(), {{.host = "127.0.0.1"}}, {}, serve_events);
  ASSERT_TRUE(server.has_value());
  Client client;
  EXPECT_EQ(loop.run_until_done(read_events(&client, (*server)->urls().front())), "0;1;2;");
}

/// An authority of our own, a certificate of its for localhost, and a server that shows it once per
/// connection.
class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/prims-tls-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    const std::string command = "cd " + directory_ +
                                " && exec 2>/dev/null && openssl req -x509 -newkey ec -pkeyopt "
                                "ec_paramgen_curve:P-256 -nodes -keyout ca.key"
                                " -out ca.pem -subj /CN=test-authority -days 2"
                                " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "
                                "server.key -out server.csr -subj /CN=x"
                                " && printf 'subjectAltName=DNS:localhost' > ext"
                                " && openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key "
                                "-CAcreateserial -out server.pem -days 2 -extfile ext";
    ASSERT_EQ(::system(command.c_str()), 0);
    context_.use_certificate_chain_file(directory_ + "/server.pem");
    context_.use_private_key_file(directory_ + "/server.key", asio::ssl::context::pem);
    thread_ = std::jthread([this] { serve(); });
  }

  void TearDown() override {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
    std::filesystem::remove_all(directory_);
  }

  void serve() {
    for (;;) {
      boost::system::error_code error;
      asio::ip::tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      if (error) return;
      asio::ssl::stream<asio::ip::tcp::socket> stream(std::move(socket), context_);
      stream.handshake(asio::ssl::stream_base::server, error);
      if (error) continue;
      char buffer[4096];
      stream.read_some(asio::buffer(buffer), error);
      asio::write(stream, asio::buffer(std::string_view("HTTP/1.1 200 OK\r\n\r\nsecret")), error);
      if (clean_end_) stream.shutdown(error);
    }
  }

  std::string url(const std::string& host) const {
    return "https://" + host + ":" + std::to_string(acceptor_.local_endpoint().port()) + "/";
  }

  std::string directory_;
  std::atomic<bool> clean_end_ = true;
  asio::io_context io_;
  asio::ssl::context context_{asio::ssl::context::tls_server};
  asio::ip::tcp::acceptor acceptor_{io_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::jthread thread_;
};

TEST_F(TlsTest, TrustsOnlyKnownAuthoritiesAndTheRightName) {
  io::Loop loop;
  Client stranger;
  EXPECT_THAT(loop.run_until_done(fetch(&stranger, get(url("localhost")))), HasSubstr("is not trusted"));
  Client client({.extra_ca_file = directory_ + "/ca.pem"});
  EXPECT_EQ(loop.run_until_done(fetch(&client, get(url("localhost")))), "200 secret");
  EXPECT_THAT(loop.run_until_done(fetch(&client, get(url("127.0.0.1")))), HasSubstr("is not trusted"));
}

TEST_F(TlsTest, HonoursTheCertificateFileOfTheEnvironment) {
  const char* before = ::getenv("SSL_CERT_FILE");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("SSL_CERT_FILE", (directory_ + "/ca.pem").c_str(), 1);
  io::Loop loop;
  Client client;
  EXPECT_EQ(loop.run_until_done(fetch(&client, get(url("localhost")))), "200 secret");
  before != nullptr ? ::setenv("SSL_CERT_FILE", kept.c_str(), 1) : ::unsetenv("SSL_CERT_FILE");
}

TEST_F(TlsTest, TakesATruncatedConnectionForAnIncompleteBody) {
  clean_end_ = false;
  io::Loop loop;
  Client client({.extra_ca_file = directory_ + "/ca.pem"});
  EXPECT_THAT(loop.run_until_done(fetch(&client, get(url("localhost")))), HasSubstr("200 error"));
}

}  // namespace
}  // namespace prims::http

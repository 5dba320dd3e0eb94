// The broker between a client as it would be inside a sandbox and a fake index on loopback.
#include "egress/broker.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"

namespace prims::egress {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::HasSubstr;

constexpr auto kPlenty = 20s;

UniqueFd listen_on_loopback(std::uint16_t* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::listen(fd.get(), 64), 0);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  *port = ntohs(address.sin_port);
  return fd;
}

/// A listening socket that must never be connected to.
class Canary {
 public:
  Canary() : fd_(listen_on_loopback(&port_)) {}
  std::uint16_t port() const { return port_; }
  bool touched() const {
    pollfd waiting{fd_.get(), POLLIN, 0};
    return ::poll(&waiting, 1, 0) != 0;
  }

 private:
  std::uint16_t port_ = 0;
  UniqueFd fd_;
};

/// An index that answers from a table, on a thread of its own.
class FakeIndex {
 public:
  FakeIndex() {
    const std::vector<http::ListenAddress> addresses{{.host = "127.0.0.1"}};
    auto handler = [this](http::Request request, http::Responder responder) {
      return answer(this, std::move(request), std::move(responder));
    };
    server_ = std::move(*http::Server::listen(loop_.executor(), addresses, {}, std::move(handler)));
    port_ = server_->port();
    thread_ = std::jthread([this] { loop_.run(); });
  }
  ~FakeIndex() {
    loop_.post([this] {
      server_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  void put(const std::string& target, http::Response response) {
    const std::lock_guard lock(mutex_);
    pages_[target] = std::move(response);
  }
  std::string url(const std::string& target) const {
    return "http://127.0.0.1:" + std::to_string(port_) + target;
  }
  std::uint16_t port() const { return port_; }
  std::vector<http::Request> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  static io::Task<> answer(FakeIndex* self, http::Request request, http::Responder responder) {
    http::Response response = self->find(request);
    // Streamed with a length, so that answers to HEAD carry it too.
    response.headers.set("Content-Length", std::to_string(response.body.size()));
    [[maybe_unused]] const auto sent = co_await responder.open(std::move(response));
  }
  http::Response find(const http::Request& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    const auto found = pages_.find(request.target);
    return found == pages_.end() ? http::Response{.status = 404, .body = "no such page"} : found->second;
  }

  std::mutex mutex_;
  std::map<std::string, http::Response> pages_;
  std::vector<http::Request> requests_;
  io::Loop loop_;
  std::unique_ptr<http::Server> server_;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

struct Answer {
  int status = 0;
  http::Headers headers;
  std::string body;
};

io::Task<Answer> fetch(http::Client* client, http::ClientRequest request) {
  auto response = co_await client->send(std::move(request));
  if (!response) co_return Answer{.body = response.error().message};
  Answer answer{.status = response->status(), .headers = response->headers()};
  auto body = co_await response->read_all(mib(16), Deadline::after(kPlenty));
  answer.body = body ? *body : "error: " + body.error().message;
  co_return answer;
}

constexpr const char* kJson = "application/vnd.pypi.simple.v1+json";

class BrokerTest : public testing::Test {
 protected:
  void start(BrokerOptions options = {}) {
    if (options.indexes.empty()) options.indexes.push_back(*http::parse_url(index_.url("/simple/")));
    auto made = Broker::start(listen_on_loopback(&port_), std::move(options));
    ASSERT_TRUE(made.has_value()) << made.error().message;
    broker_ = std::move(*made);
  }

  std::string local(const std::string& target) const {
    return "http://127.0.0.1:" + std::to_string(port_) + target;
  }

  Answer get(const std::string& url, http::Headers headers = {}, const std::string& method = "GET") {
    http::ClientRequest request;
    request.method = method;
    request.url = *http::parse_url(url);
    request.headers = std::move(headers);
    request.deadline = Deadline::after(kPlenty);
    return loop_.run_until_done(fetch(&client_, std::move(request)));
  }

  /// The raw answer to raw bytes.
  std::string raw(std::string_view bytes) const {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      return "not connected";
    (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(fd.get(), SHUT_WR);
    std::string answer;
    char buffer[4096];
    for (ssize_t got; (got = ::recv(fd.get(), buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
    return answer;
  }

  void put_json(const std::string& target, const std::string& file_url) {
    index_.put(target,
               {.headers = {{"Content-Type", kJson}, {"ETag", "\"e1\""}, {"Cache-Control", "max-age=600"}},
                .body = R"({"files":[{"filename":"a.whl","url":")" + file_url + R"("}]})"});
  }

  FakeIndex index_;
  std::uint16_t port_ = 0;
  io::Loop loop_;
  http::Client client_;
  std::unique_ptr<Broker> broker_;
};

TEST_F(BrokerTest, ServesPagesAndTheFilesThatTheyName) {
  start();
  put_json("/simple/pkg/", "../../files/a.whl");
  index_.put("/files/a.whl",
             {.headers = {{"Content-Type", "application/octet-stream"}, {"Accept-Ranges", "bytes"}},
              .body = std::string(300'000, 'w')});
  index_.put("/files/a.whl.metadata", {.body = "Name: pkg"});
  EXPECT_EQ(broker_->index_url(0), local("/index/0/"));
  const Answer page = get(local("/index/0/pkg/"), {{"Accept", kJson}, {"If-None-Match", "\"e0\""}});
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.get("ETag"), "\"e1\"");
  EXPECT_EQ(page.headers.get("Cache-Control"), "max-age=600");
  const std::string file = local("/file/http/127.0.0.1/" + std::to_string(index_.port()) + "/files/a.whl");
  EXPECT_EQ(page.body, R"({"files":[{"filename":"a.whl","url":")" + file + R"("}]})");
  EXPECT_EQ(index_.requests().at(0).headers.get("Accept"), kJson);
  EXPECT_EQ(index_.requests().at(0).headers.get("If-None-Match"), "\"e0\"");
  EXPECT_EQ(get(file).body, std::string(300'000, 'w'));
  EXPECT_EQ(get(file + ".metadata").body, "Name: pkg");
  const Answer head = get(file, {}, "HEAD");
  EXPECT_EQ(head.headers.get("Content-Length"), "300000");
  EXPECT_EQ(head.headers.get("Accept-Ranges"), "bytes");
  EXPECT_EQ(get(local("/index/0/pkg/"), {}, "HEAD").status, 200);
  EXPECT_EQ(get(local("/index/0/nothing/")).status, 404);
  EXPECT_EQ(broker_->report().refused, 0U);
  EXPECT_FALSE(broker_->report().last_upstream_error.has_value());
}

TEST_F(BrokerTest, PassesRangesAndConditionsOn) {
  start();
  put_json("/simple/pkg/", "/a.whl");
  index_.put("/a.whl", {.status = 206, .headers = {{"Content-Range", "bytes 1-3/9"}}, .body = "bcd"});
  get(local("/index/0/pkg/"));
  const std::string file = local("/file/http/127.0.0.1/" + std::to_string(index_.port()) + "/a.whl");
  const Answer part = get(file, {{"Range", "bytes=1-3"}, {"X-Other", "y"}, {"Cookie", "z"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.headers.get("Content-Range"), "bytes 1-3/9");
  EXPECT_EQ(index_.requests().back().headers.get("Range"), "bytes=1-3");
  EXPECT_FALSE(index_.requests().back().headers.get("X-Other").has_value());
  EXPECT_FALSE(index_.requests().back().headers.get("Cookie").has_value());
  index_.put("/a.whl", {.status = 304, .headers = {{"ETag", "\"e\""}}});
  EXPECT_EQ(get(file, {{"If-None-Match", "\"e\""}}).status, 304);
}

TEST_F(BrokerTest, KeepsCredentialsOutside) {
  BrokerOptions options;
  options.indexes.push_back(
      *http::parse_url("http://user:secret@127.0.0.1:" + std::to_string(index_.port()) + "/simple"));
  start(std::move(options));
  put_json("/simple/pkg/", "/a.whl");
  const Answer page = get(local("/index/0/pkg/"), {{"Authorization", "Basic mine"}});
  EXPECT_THAT(page.body, testing::Not(HasSubstr("secret")));
  EXPECT_EQ(index_.requests().back().headers.all("Authorization"),
            std::vector<std::string_view>{"Basic dXNlcjpzZWNyZXQ="});
}

TEST_F(BrokerTest, RefusesWhatNoIndexNamed) {
  start();
  const Canary canary;
  const std::string port = std::to_string(canary.port());
  const std::string host = "127.0.0.1:" + port;
  const std::string requests[] = {
      "GET /file/http/127.0.0.1/" + port + "/x HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
      "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
      "GET //" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
      "GET /index/0/../../" + host + "/ HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /index/0/%2e%2e%2f%2e%2e/ HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /index/0/@" + host + "\\x HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /index/1/pkg/ HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /file/http/u:p@127.0.0.1/" + port + "/x HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /file/http/localhost/" + port + "/x HTTP/1.1\r\nHost: x\r\n\r\n",
      "POST /index/0/pkg/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
      "PUT /index/0/pkg/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
      "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
  };
  for (const std::string& request : requests) {
    EXPECT_THAT(raw(request), testing::StartsWith("HTTP/1.1 403 ")) << request;
  }
  EXPECT_EQ(broker_->report().refused, std::size(requests));
  EXPECT_EQ(broker_->report().refusals.size(), std::size(requests));
  EXPECT_THAT(broker_->report().refusals.at(0), HasSubstr("is not a host that the package index named"));
  EXPECT_THAT(raw("GET /index/0/a HTTP/1.1\r\nHost: x\r\nX: a\rHost: b\r\n\r\n"),
              testing::StartsWith("HTTP/1.1 400 "));
  EXPECT_FALSE(canary.touched());
  EXPECT_TRUE(index_.requests().empty());
}

TEST_F(BrokerTest, DoesNotDialForbiddenAddressesThatAnIndexNames) {
  start();
  const Canary canary;
  const std::string port = std::to_string(canary.port());
  for (const std::string host :
       {"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1.2.3"}) {
    put_json("/simple/pkg/", "http://" + host + ":" + port + "/x.whl");
    const std::string page = get(local("/index/0/pkg/")).body;
    const auto start_of_url = page.find("http://");
    if (start_of_url == std::string::npos) continue;  // left out of the page: just as well
    const std::string url = page.substr(start_of_url, page.find('"', start_of_url) - start_of_url);
    const Answer answer = get(url);
    EXPECT_EQ(answer.status, 403) << url << " " << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("not a public address"));
  }
  EXPECT_FALSE(canary.touched());
}

TEST_F(BrokerTest, FollowsRedirectsOnlyWhereItMayGo) {
  start();
  const Canary canary;
  index_.put("/simple/here/", {.status = 301, .headers = {{"Location", "/simple/there/"}}});
  put_json("/simple/there/", "a.whl");
  const Answer page = get(local("/index/0/here/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("/simple/there/a.whl"));
  for (const std::string& away : {"http://127.0.0.1:" + std::to_string(canary.port()) + "/",
                                  "http://localhost:" + std::to_string(canary.port()) + "/",
                                  "http://localhost:" + std::to_string(index_.port()) + "/simple/there/",
                                  "//127.0.0.1:" + std::to_string(canary.port()) + "/"}) {
    index_.put("/simple/away/", {.status = 302, .headers = {{"Location", away}}});
    EXPECT_EQ(get(local("/index/0/away/")).status, 403) << away;
  }
  index_.put("/simple/round/", {.status = 302, .headers = {{"Location", "/simple/round/"}}});
  EXPECT_EQ(get(local("/index/0/round/")).status, 502);
  EXPECT_FALSE(canary.touched());
}

TEST_F(BrokerTest, RemembersFileHostsForItsCaller) {
  start();
  put_json("/simple/pkg/", "/a.whl");
  index_.put("/a.whl", {.body = "wheel"});
  get(local("/index/0/pkg/"));
  const std::vector<FileHost> learned = broker_->report().file_hosts;
  ASSERT_EQ(learned.size(), 1U);
  EXPECT_EQ(learned[0].host, "127.0.0.1");
  EXPECT_EQ(learned[0].index_address, "127.0.0.1");
  broker_->stop();
  EXPECT_EQ(broker_->report().file_hosts, learned);
  BrokerOptions options;
  options.file_hosts = learned;
  start(std::move(options));
  EXPECT_EQ(get(local("/file/http/127.0.0.1/" + std::to_string(index_.port()) + "/a.whl")).body, "wheel");
}

TEST_F(BrokerTest, BoundsWhatItPassesOn) {
  BrokerOptions options;
  options.response = kib(100);
  options.page = kib(100);
  start(std::move(options));
  put_json("/simple/pkg/", "/a.whl");
  index_.put("/a.whl", {.body = std::string(200'000, 'x')});
  index_.put("/simple/huge/",
             {.headers = {{"Content-Type", "text/html"}}, .body = std::string(200'000, 'x')});
  get(local("/index/0/pkg/"));
  const Answer file = get(local("/file/http/127.0.0.1/" + std::to_string(index_.port()) + "/a.whl"));
  EXPECT_THAT(file.body, HasSubstr("error"));
  const Answer page = get(local("/index/0/huge/"));
  EXPECT_EQ(page.status, 502);
  EXPECT_THAT(*broker_->report().last_upstream_error, HasSubstr("too large"));
}

TEST_F(BrokerTest, SaysWhenThereIsNoNetwork) {
  std::uint16_t closed_port = 0;
  listen_on_loopback(&closed_port).reset();
  BrokerOptions options;
  options.indexes.push_back(*http::parse_url("http://127.0.0.1:" + std::to_string(closed_port) + "/simple/"));
  start(std::move(options));
  EXPECT_EQ(get(local("/index/0/pkg/")).status, 502);
  const BrokerReport report = broker_->report();
  EXPECT_THAT(report.last_upstream_error.value(), HasSubstr("Connection refused"));
  EXPECT_EQ(report.upstream_answers, 0U);
}

TEST_F(BrokerTest, GivesUpOnAnIndexThatSaysNothing) {
  const Canary silent;
  BrokerOptions options;
  options.stall = 50ms;
  options.indexes.push_back(
      *http::parse_url("http://127.0.0.1:" + std::to_string(silent.port()) + "/simple/"));
  start(std::move(options));
  EXPECT_EQ(get(local("/index/0/pkg/")).status, 504);
}

TEST_F(BrokerTest, StopsAtOnceAlsoInTheMiddleOfARequest) {
  const Canary silent;
  BrokerOptions options;
  options.indexes.push_back(
      *http::parse_url("http://127.0.0.1:" + std::to_string(silent.port()) + "/simple/"));
  start(std::move(options));
  auto answer =
      std::async(std::launch::async, [this] { return raw("GET /index/0/a/ HTTP/1.1\r\nHost: x\r\n\r\n"); });
  while (!silent.touched()) std::this_thread::yield();
  broker_->stop();
  EXPECT_THAT(answer.get(), testing::Not(HasSubstr("200")));
  EXPECT_EQ(raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "not connected");
}

}  // namespace
}  // namespace prims::egress

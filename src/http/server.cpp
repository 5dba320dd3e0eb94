#include "http/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <unordered_set>

#include "http/connection.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/wait.h"

namespace prims::http {
namespace asio = boost::asio;
using asio::ip::tcp;
namespace {

constexpr Milliseconds kBusyTick{20};
constexpr Milliseconds kAcceptPause{50};
constexpr int kPortAttempts = 16;
constexpr std::string_view kBusyAnswer =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n";

Milliseconds idle_tick(const ServerLimits& limits) {
  const Milliseconds shortest =
      std::min({limits.header_time, limits.body_time, limits.idle_time, limits.write_time});
  return std::clamp(shortest / 4, Milliseconds(5), Milliseconds(250));
}

/// Where an address family is missing or switched off, as opposed to an address that is taken.
bool is_missing(const boost::system::error_code& error) {
  return error == asio::error::address_family_not_supported || error.value() == EADDRNOTAVAIL ||
         error.value() == EPFNOSUPPORT;
}

boost::system::error_code listen_on(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return error;
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6()) acceptor.set_option(asio::ip::v6_only(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  return error;
}

struct Listening {
  std::vector<tcp::acceptor> acceptors;
  bool port_was_taken = false;  // by someone else, on one of several addresses that should share a free port
};

Result<Listening> listen_on_all(const io::Executor& executor, const std::vector<ListenAddress>& addresses) {
  Listening all;
  std::uint16_t shared_port = 0;
  for (const ListenAddress& address : addresses) {
    boost::system::error_code error;
    const auto ip = asio::ip::make_address(address.host, error);
    if (error) return fail(Kind::invalid_input, fmt::format("'{}' is not a numeric address", address.host));
    tcp::acceptor acceptor(executor);
    const tcp::endpoint endpoint(ip, address.port != 0 ? address.port : shared_port);
    error = listen_on(acceptor, endpoint);
    if (error && address.need == ListenAddress::Need::if_available && is_missing(error)) continue;
    if (error && address.port == 0 && shared_port != 0) {
      all.port_was_taken = true;
      return all;
    }
    if (error) {
      return fail(Kind::unavailable, fmt::format("cannot listen on {} port {}: {}", address.host,
                                                 endpoint.port(), error.message()));
    }
    if (address.port == 0) shared_port = acceptor.local_endpoint().port();
    all.acceptors.push_back(std::move(acceptor));
  }
  if (all.acceptors.empty()) return fail(Kind::invalid_input, "there is no address to listen on");
  return all;
}

}  // namespace

class Server::State : public std::enable_shared_from_this<State> {
 public:
  State(io::Executor executor, std::vector<tcp::acceptor> acceptors, ServerLimits limits, Handler handler)
      : executor_(std::move(executor)),
        acceptors_(std::move(acceptors)),
        context_(std::make_shared<ConnectionContext>()) {
    context_->limits = limits;
    context_->handler = std::move(handler);
    for (const tcp::acceptor& acceptor : acceptors_) endpoints_.push_back(acceptor.local_endpoint());
    all_ended_.set();
  }

  void start() {
    for (std::size_t i = 0; i < acceptors_.size(); ++i) {
      io::spawn(executor_, accept_loop(shared_from_this(), i), "accept loop");
    }
    io::spawn(executor_, tick_loop(shared_from_this()), "connection deadlines");
  }

  void close_all() {
    stopped_ = true;
    stop_accepting();
    context_->request_begun.set();
    const auto closing = connections_;
    for (const auto& connection : closing) connection->close_hard();
  }

  static io::Task<> drain(std::shared_ptr<State> self, Deadline deadline) {
    self->stop_accepting();
    self->context_->draining = true;
    const auto idle = self->connections_;
    for (const auto& connection : idle) connection->close_if_idle();
    const auto ended = co_await self->all_ended_.wait(deadline);
    if (!ended) {
      const auto left = self->connections_;
      for (const auto& connection : left) connection->close_hard();
      [[maybe_unused]] const auto gone = co_await self->all_ended_.wait();
    }
  }

  const std::vector<tcp::endpoint>& endpoints() const { return endpoints_; }
  std::size_t connections() const { return connections_.size(); }

 private:
  static io::Task<> accept_loop(std::shared_ptr<State> self, std::size_t index) {
    tcp::acceptor& acceptor = self->acceptors_[index];
    while (acceptor.is_open()) {
      auto [error, socket] = co_await acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
      if (!error) {
        self->welcome(std::move(socket));
      } else if (acceptor.is_open()) {
        // Out of descriptors, most likely: the pending connection stays in the queue meanwhile.
        [[maybe_unused]] const auto slept = co_await io::sleep_until(Deadline::after(kAcceptPause));
      }
    }
  }

  /// Looks at every connection now and then: often while requests are handled, seldom otherwise.
  static io::Task<> tick_loop(std::shared_ptr<State> self) {
    const Milliseconds quiet = idle_tick(self->context_->limits);
    const io::Event begun = self->context_->request_begun;
    while (!self->stopped_) {
      begun.reset();
      const Deadline rest = self->connections_.empty() ? Deadline::never() : Deadline::after(quiet);
      auto busy = co_await begun.wait(rest);
      while (busy && !self->stopped_) {
        begun.reset();
        [[maybe_unused]] const auto slept =
            co_await io::sleep_until(Deadline::after(std::min(kBusyTick, quiet)));
        self->tick_all();
        if (!begun.is_set()) break;
      }
      if (!busy) self->tick_all();
    }
  }

  static io::Task<> serve(std::shared_ptr<State> self, std::shared_ptr<Connection> connection) {
    co_await Connection::run(connection);
    self->forget(connection);
  }

  void tick_all() {
    const auto now = Clock::now();
    const auto all = connections_;  // a tick may end a connection
    for (const auto& connection : all) connection->tick(now);
  }

  void welcome(tcp::socket socket) {
    boost::system::error_code error;
    const auto endpoint = socket.remote_endpoint(error);
    if (error || stopped_) return;
    const std::string peer = endpoint.address().to_string();
    const ServerLimits& limits = context_->limits;
    const auto of_peer = per_peer_.find(peer);
    const std::size_t peer_connections = of_peer == per_peer_.end() ? 0 : of_peer->second;
    if (connections_.size() >= limits.connections || peer_connections >= limits.connections_per_peer) {
      (void)::send(socket.native_handle(), kBusyAnswer.data(), kBusyAnswer.size(),
                   MSG_NOSIGNAL | MSG_DONTWAIT);
      return;
    }
    socket.set_option(tcp::no_delay(true), error);
    auto connection = std::make_shared<Connection>(std::move(socket), peer, context_);
    connections_.insert(connection);
    ++per_peer_[peer];
    all_ended_.reset();
    context_->request_begun.set();
    io::spawn(executor_, serve(shared_from_this(), std::move(connection)), "HTTP connection");
  }

  void forget(const std::shared_ptr<Connection>& connection) {
    connections_.erase(connection);
    if (const auto found = per_peer_.find(connection->peer()); --found->second == 0) per_peer_.erase(found);
    if (connections_.empty()) all_ended_.set();
  }

  void stop_accepting() {
    boost::system::error_code ignored;
    for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
  }

  io::Executor executor_;
  std::vector<tcp::acceptor> acceptors_;
  std::vector<tcp::endpoint> endpoints_;
  std::shared_ptr<ConnectionContext> context_;                   // shared with the connections
  std::unordered_set<std::shared_ptr<Connection>> connections_;  // each is also held by its own Task
  std::map<std::string, std::size_t> per_peer_;
  io::Event all_ended_;
  bool stopped_ = false;
};

Result<std::unique_ptr<Server>> Server::listen(io::Executor executor, std::vector<ListenAddress> addresses,
                                               ServerLimits limits, Handler handler) {
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    PRIMS_ASSIGN_OR_RETURN(Listening all, listen_on_all(executor, addresses));
    if (all.port_was_taken) continue;
    auto state = std::make_shared<State>(executor, std::move(all.acceptors), limits, std::move(handler));
    state->start();
    return std::unique_ptr<Server>(new Server(std::move(state)));
  }
  return fail(Kind::unavailable, "no port is free on all addresses at once");
}

Result<std::unique_ptr<Server>> Server::adopt(io::Executor executor, UniqueFd listening, ServerLimits limits,
                                              Handler handler) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return fail_errno("getsockname");
  }
  tcp::acceptor acceptor(executor);
  boost::system::error_code error;
  acceptor.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), listening.get(), error);
  if (error) return fail_errno("register listening socket", error.value());
  (void)listening.release();
  std::vector<tcp::acceptor> acceptors;
  acceptors.push_back(std::move(acceptor));
  auto state = std::make_shared<State>(executor, std::move(acceptors), limits, std::move(handler));
  state->start();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::shared_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() {
  state_->close_all();
}

std::uint16_t Server::port() const {
  return state_->endpoints().front().port();
}

std::vector<std::string> Server::urls() const {
  std::vector<std::string> urls;
  for (const tcp::endpoint& endpoint : state_->endpoints()) {
    const std::string host = endpoint.address().to_string();
    const bool bracketed = endpoint.address().is_v6();
    urls.push_back(
        fmt::format("http://{}{}{}:{}", bracketed ? "[" : "", host, bracketed ? "]" : "", endpoint.port()));
  }
  return urls;
}

std::size_t Server::connections() const {
  return state_->connections();
}

io::Task<> Server::drain(Deadline deadline) {
  return State::drain(state_, deadline);
}

}  // namespace prims::http

#include "http/client_connection.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>

#include "io/event.h"

namespace prims::http {
namespace asio = boost::asio;
using asio::ip::tcp;
namespace {

constexpr std::size_t kReadAhead = 64 << 10;
/// For one of several addresses; the last may use all the time that is left.
constexpr Milliseconds kConnectTime{5000};

Address to_address(const tcp::endpoint& endpoint) {
  Address address;
  address.port = endpoint.port();
  if (endpoint.address().is_v4()) {
    const auto bytes = endpoint.address().to_v4().to_bytes();
    std::ranges::copy(bytes, address.bytes.begin());
  } else {
    address.family = Address::Family::v6;
    address.bytes = endpoint.address().to_v6().to_bytes();
  }
  return address;
}

/// A name look-up that may outlast the Task that asked: the C library cannot be interrupted.
struct Lookup {
  explicit Lookup(const io::Executor& executor) : resolver(executor) {}
  tcp::resolver resolver;
  boost::system::error_code error;
  tcp::resolver::results_type found;
  io::Event done;
};

bool is_end(const boost::system::error_code& error) {
  return error == asio::error::eof;
}

}  // namespace

ClientResponse::Connection::Connection(io::Executor executor, std::string origin, Bytes header_limit)
    : socket_(executor),
      watchdog_(executor),
      origin_(std::move(origin)),
      header_limit_(header_limit),
      input_(static_cast<std::size_t>(header_limit.count) + kReadAhead) {}

io::Task<Result<ClientResponse::Connection::Endpoints>> ClientResponse::Connection::look_up(
    Url url, Deadline deadline) {
  boost::system::error_code not_numeric;
  const auto numeric = asio::ip::make_address(url.host, not_numeric);
  if (!not_numeric) co_return Endpoints{tcp::endpoint(numeric, url.port)};
  const io::Executor executor = co_await io::this_executor;
  auto lookup = std::make_shared<Lookup>(executor);
  lookup->resolver.async_resolve(
      url.host, std::to_string(url.port), tcp::resolver::numeric_service,
      [lookup](const boost::system::error_code& error, tcp::resolver::results_type found) {
        lookup->error = error;
        lookup->found = std::move(found);
        lookup->done.set();
      });
  auto looked_up = co_await lookup->done.wait(deadline);
  if (!looked_up) {
    co_return fail(looked_up.error().kind, fmt::format("the name {} was not resolved in time", url.host));
  }
  if (lookup->error) {
    co_return fail(Kind::unavailable,
                   fmt::format("cannot resolve {}: {}", url.host, lookup->error.message()));
  }
  Endpoints endpoints;
  for (const auto& entry : lookup->found) endpoints.push_back(entry.endpoint());
  co_return endpoints;
}

io::Task<Result<std::shared_ptr<ClientResponse::Connection>>> ClientResponse::Connection::dial(
    std::shared_ptr<Client::Pool> pool, Url url, AddressFilter allow, Deadline deadline) {
  const io::Executor executor = co_await io::this_executor;
  asio::ssl::context* tls = nullptr;
  if (url.scheme == "https") {
    PRIMS_CO_ASSIGN_OR_RETURN(tls, pool->tls());
  }
  auto found = co_await look_up(url, deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(const Endpoints endpoints, std::move(found));
  Error last{Kind::unavailable, fmt::format("{} has no address", url.host)};
  for (std::size_t i = 0; i < endpoints.size() && !deadline.passed(); ++i) {
    auto self = std::make_shared<Connection>(executor, url.origin(), pool->options().header);
    self->pool = pool;
    self->peer_ = to_address(endpoints[i]);
    if (allow) {
      if (auto allowed = allow(self->peer_); !allowed) {
        last = std::move(allowed).error();
        continue;
      }
    }
    const bool is_last = i + 1 == endpoints.size();
    const Deadline attempt =
        is_last ? deadline : Deadline{std::min(deadline.at, Clock::now() + kConnectTime)};
    auto connected = co_await connect(self, endpoints[i], attempt);
    if (connected && tls != nullptr) connected = co_await greet(self, tls, url.host, deadline);
    if (connected) co_return self;
    last = std::move(connected).error();
    if (last.kind == Kind::cancelled) break;
  }
  co_return std::unexpected(std::move(last));
}

io::Task<Result<>> ClientResponse::Connection::connect(std::shared_ptr<Connection> self,
                                                       tcp::endpoint endpoint, Deadline deadline) {
  self->arm(deadline);
  auto [error] = co_await self->socket_.async_connect(endpoint, asio::as_tuple(asio::use_awaitable));
  self->disarm();
  if (error) co_return self->failure("cannot connect to", error);
  self->socket_.set_option(tcp::no_delay(true), error);
  co_return Result<>();
}

io::Task<Result<>> ClientResponse::Connection::greet(std::shared_ptr<Connection> self,
                                                     asio::ssl::context* tls, std::string host,
                                                     Deadline deadline) {
  self->tls_.emplace(self->socket_, *tls);
  SSL* const ssl = self->tls_->native_handle();
  boost::system::error_code is_name;
  asio::ip::make_address(host, is_name);
  if (is_name && SSL_set_tlsext_host_name(ssl, host.c_str()) != 1) {
    co_return fail(Kind::invalid_input, "the host's name is not usable with TLS");
  }
  self->tls_->set_verify_mode(asio::ssl::verify_peer);
  self->tls_->set_verify_callback(asio::ssl::host_name_verification(host));
  self->arm(deadline);
  auto [error] = co_await self->tls_->async_handshake(asio::ssl::stream_base::client,
                                                      asio::as_tuple(asio::use_awaitable));
  self->disarm();
  if (!error) co_return Result<>();
  const long verdict = SSL_get_verify_result(ssl);
  if (verdict != X509_V_OK && !self->timed_out_) {
    co_return fail(Kind::unavailable, fmt::format("the certificate of {} is not trusted: {}", self->origin_,
                                                  X509_verify_cert_error_string(verdict)));
  }
  co_return self->failure("TLS failed with", error);
}

io::Task<Result<>> ClientResponse::Connection::exchange(std::shared_ptr<Connection> self, std::string head,
                                                        std::string body, ResponseBody framing,
                                                        Deadline deadline) {
  self->heard_nothing_ = true;
  self->arm(deadline);
  const std::array<asio::const_buffer, 2> message{asio::buffer(head), asio::buffer(body)};
  boost::system::error_code error;
  if (self->tls_) {
    std::tie(error, std::ignore) =
        co_await asio::async_write(*self->tls_, message, asio::as_tuple(asio::use_awaitable));
  } else {
    std::tie(error, std::ignore) =
        co_await asio::async_write(self->socket_, message, asio::as_tuple(asio::use_awaitable));
  }
  // A peer that stops listening may have said why before.
  auto answered = co_await read_head(self, framing);
  self->disarm();
  if (answered) co_return Result<>();
  self->close();
  if (error && self->heard_nothing_) co_return self->failure("cannot send to", error);
  co_return answered;
}

io::Task<Result<>> ClientResponse::Connection::read_head(std::shared_ptr<Connection> self,
                                                         ResponseBody framing) {
  for (;;) {
    self->parser_ = std::make_unique<ResponseParser>(self->header_limit_, framing);
    while (!self->parser_->head_done()) {
      auto more = co_await read_more(self);
      PRIMS_CO_RETURN_ON_ERROR(std::move(more));
    }
    const int status = self->parser_->status();
    if (status >= 200) co_return Result<>();
    if (status == 101) co_return fail(Kind::unavailable, "the peer switched protocols unasked");
  }
}

/// Feeds the parser: first what is there, else what arrives next.
io::Task<Result<>> ClientResponse::Connection::read_more(std::shared_ptr<Connection> self) {
  if (!self->input_.empty()) {
    const auto used = self->parser_->feed(self->input_.view());
    if (!used)
      co_return fail(Kind::unavailable,
                     fmt::format("bad answer of {}: {}", self->origin_, used.error().message));
    self->input_.used(*used);
    if (*used > 0) co_return Result<>();
  }
  const std::span<char> room = self->input_.room();
  if (room.empty()) co_return fail(Kind::unavailable, fmt::format("bad answer of {}", self->origin_));
  const auto into = asio::buffer(room.data(), std::min(room.size(), kReadAhead));
  boost::system::error_code error;
  std::size_t count = 0;
  if (self->tls_) {
    std::tie(error, count) = co_await self->tls_->async_read_some(into, asio::as_tuple(asio::use_awaitable));
  } else {
    std::tie(error, count) =
        co_await self->socket_.async_read_some(into, asio::as_tuple(asio::use_awaitable));
  }
  self->input_.filled(count);
  if (count > 0) self->heard_nothing_ = false;
  if (!error || count > 0) co_return Result<>();
  if (!is_end(error)) co_return self->failure("lost the connection to", error);
  const auto ended = self->parser_->feed_end();
  if (!ended) co_return fail(Kind::unavailable, fmt::format("{}: {}", self->origin_, ended.error().message));
  co_return Result<>();
}

io::Task<Result<std::string>> ClientResponse::Connection::read_body(std::shared_ptr<Connection> self,
                                                                    Deadline deadline) {
  self->arm(deadline);
  Result<> more;
  while (more && self->parser_->body_size() == 0 && !self->parser_->done()) {
    more = co_await read_more(self);
  }
  self->disarm();
  if (more) co_return self->parser_->take_body();
  self->close();
  co_return std::unexpected(std::move(more).error());
}

bool ClientResponse::Connection::is_alive() {
  char byte;
  const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && errno == EAGAIN && input_.empty();
}

void ClientResponse::Connection::finish() {
  const auto keeper = pool.lock();
  const bool complete = parser_ && parser_->done() && parser_->keep_alive() && input_.empty() && !timed_out_;
  if (!keeper || !complete || !socket_.is_open()) return close();
  idle_since_ = Clock::now();
  keeper->give(shared_from_this());
}

void ClientResponse::Connection::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  disarm();
}

void ClientResponse::Connection::arm(Deadline deadline) {
  const std::uint64_t mine = ++watch_;
  if (deadline.at == Deadline::never().at) return;
  watchdog_.expires_at(deadline.at);
  watchdog_.async_wait([self = shared_from_this(), mine](const boost::system::error_code& error) {
    if (error || mine != self->watch_) return;
    self->timed_out_ = true;
    boost::system::error_code ignored;
    self->socket_.close(ignored);
  });
}

void ClientResponse::Connection::disarm() {
  ++watch_;
  watchdog_.cancel();
}

std::unexpected<Error> ClientResponse::Connection::failure(std::string_view what,
                                                           const boost::system::error_code& error) const {
  if (timed_out_) return fail(Kind::timed_out, fmt::format("{} did not answer in time", origin_));
  if (error == asio::error::operation_aborted) return fail(Kind::cancelled, "the request was cancelled");
  return fail(Kind::unavailable, fmt::format("{} {}: {}", what, origin_, error.message()));
}

}  // namespace prims::http

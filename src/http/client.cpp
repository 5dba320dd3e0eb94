#include "http/client.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/url/decode_view.hpp>

#include "http/client_connection.h"
#include "http/serialize.h"

namespace prims::http {
namespace asio = boost::asio;
namespace {

/// Connections of all origins together that wait for another use.
constexpr std::size_t kIdleTotal = 64;
constexpr Milliseconds kIdleTime{60'000};

bool is_repeatable(const std::string& method) {
  return method == "GET" || method == "HEAD";
}

bool carries_body(const ClientRequest& request) {
  return !request.body.empty() || request.method == "POST" || request.method == "PUT" ||
         request.method == "PATCH";
}

std::string basic_credentials(const std::string& user_info) {
  std::string plain;
  for (const char c : boost::urls::decode_view(user_info)) plain.push_back(c);
  if (!plain.contains(':')) plain.push_back(':');
  std::string encoded(4 * ((plain.size() + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                      reinterpret_cast<const unsigned char*>(plain.data()), static_cast<int>(plain.size()));
  encoded.resize(static_cast<std::size_t>(length));
  return "Basic " + encoded;
}

Result<> check(const ClientRequest& request) {
  const Headers method{{request.method, ""}};
  const Headers target{{"x", request.url.target}};
  const bool plain_target = target.well_formed() && request.url.target.starts_with('/') &&
                            request.url.target.find_first_of(" \t") == std::string::npos;
  if (!method.well_formed() || !plain_target)
    return fail(Kind::invalid_input, "the request line is malformed");
  if (!request.headers.well_formed()) return fail(Kind::invalid_input, "a header field is malformed");
  return {};
}

}  // namespace

Client::Pool::~Pool() {
  for (const auto& [origin, kept] : idle_) {
    for (const auto& connection : kept) connection->close();
  }
}

std::shared_ptr<ClientResponse::Connection> Client::Pool::take(const std::string& origin,
                                                               const AddressFilter& allow) {
  const auto found = idle_.find(origin);
  if (found == idle_.end()) return nullptr;
  std::shared_ptr<ClientResponse::Connection> usable;
  while (!usable && !found->second.empty()) {
    auto candidate = std::move(found->second.back());
    found->second.pop_back();
    const bool fresh = Clock::now() - candidate->idle_since() < kIdleTime && candidate->is_alive();
    if (fresh && (!allow || allow(candidate->peer()))) {
      usable = std::move(candidate);
    } else {
      candidate->close();
    }
  }
  if (found->second.empty()) idle_.erase(found);
  return usable;
}

void Client::Pool::give(std::shared_ptr<ClientResponse::Connection> connection) {
  std::size_t total = 0;
  for (const auto& [origin, kept] : idle_) total += kept.size();
  auto& kept = idle_[connection->origin()];
  if (total >= kIdleTotal || kept.size() >= options_.idle_connections) {
    connection->close();
    if (kept.empty()) idle_.erase(connection->origin());
    return;
  }
  kept.push_back(std::move(connection));
}

Result<asio::ssl::context*> Client::Pool::tls() {
  if (tls_) return &*tls_;
  asio::ssl::context context(asio::ssl::context::tls_client);
  boost::system::error_code error;
  context.set_default_verify_paths(error);
  if (!error && !options_.extra_ca_file.empty()) context.load_verify_file(options_.extra_ca_file, error);
  if (error)
    return fail(Kind::unavailable, fmt::format("cannot read the trusted certificates: {}", error.message()));
  context.set_verify_mode(asio::ssl::verify_peer);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  tls_.emplace(std::move(context));
  return &*tls_;
}

Client::Client(ClientOptions options) : pool_(std::make_shared<Pool>(std::move(options))) {}
Client::~Client() = default;

io::Task<Result<ClientResponse>> Client::send(ClientRequest request) {
  return send_through(pool_, std::move(request));
}

io::Task<Result<ClientResponse>> Client::send_through(std::shared_ptr<Pool> pool, ClientRequest request) {
  PRIMS_CO_RETURN_ON_ERROR(check(request));
  if (!request.url.user_info.empty() && !request.headers.get("Authorization")) {
    request.headers.set("Authorization", basic_credentials(request.url.user_info));
  }
  std::optional<std::uint64_t> length;
  if (carries_body(request)) length = request.body.size();
  const std::string host = request.url.authority();
  request.headers.remove("Host");
  const std::string head = request_head(request.method, request.url.target, host, request.headers, length);
  const ResponseBody framing = request.method == "HEAD" ? ResponseBody::none : ResponseBody::by_framing;
  for (;;) {
    auto connection = pool->take(request.url.origin(), request.allow_address);
    const bool kept = connection != nullptr;
    if (!kept) {
      auto dialled = co_await ClientResponse::Connection::dial(pool, request.url, request.allow_address,
                                                               request.deadline);
      PRIMS_CO_ASSIGN_OR_RETURN(connection, std::move(dialled));
    }
    auto answered = co_await ClientResponse::Connection::exchange(connection, head, request.body, framing,
                                                                  request.deadline);
    if (answered) co_return ClientResponse(std::move(connection));
    const bool again = kept && connection->heard_nothing() && is_repeatable(request.method) &&
                       answered.error().kind == Kind::unavailable;
    if (!again) co_return std::unexpected(std::move(answered).error());
  }
}

ClientResponse::ClientResponse(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
ClientResponse::ClientResponse(ClientResponse&&) noexcept = default;

ClientResponse& ClientResponse::operator=(ClientResponse&& other) noexcept {
  std::swap(connection_, other.connection_);
  return *this;
}

ClientResponse::~ClientResponse() {
  if (connection_) connection_->finish();
}

int ClientResponse::status() const {
  return connection_->parser().status();
}
const Headers& ClientResponse::headers() const {
  return connection_->parser().headers();
}
Address ClientResponse::peer() const {
  return connection_->peer();
}

io::Task<Result<std::string>> ClientResponse::read_some(Deadline deadline) {
  return Connection::read_body(connection_, deadline);
}

io::Task<Result<std::string>> ClientResponse::read_all(Bytes limit, Deadline deadline) {
  std::string all;
  for (;;) {
    auto piece = co_await Connection::read_body(connection_, deadline);
    PRIMS_CO_RETURN_ON_ERROR(piece);
    if (piece->empty()) co_return all;
    if (all.size() + piece->size() > limit.count) co_return fail(Kind::exhausted, "the answer is too large");
    all.append(*piece);
  }
}

}  // namespace prims::http

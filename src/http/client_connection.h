// One connection of the client: dialling, TLS, one exchange at a time. Internal to this folder.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/buffer.h"
#include "http/client.h"
#include "http/parser.h"

namespace prims::http {

/// Connections that wait to be used again, and the TLS settings. Shared by the client and its connections.
class Client::Pool {
 public:
  explicit Pool(ClientOptions options) : options_(std::move(options)) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  const ClientOptions& options() const { return options_; }

  /// A kept connection whose peer has not closed it and which the filter allows; null when there is none.
  std::shared_ptr<ClientResponse::Connection> take(const std::string& origin, const AddressFilter& allow);
  void give(std::shared_ptr<ClientResponse::Connection> connection);

  /// Reads the system's certificates at its first use.
  Result<boost::asio::ssl::context*> tls();

 private:
  ClientOptions options_;
  std::map<std::string, std::vector<std::shared_ptr<ClientResponse::Connection>>> idle_;
  std::optional<boost::asio::ssl::context> tls_;
};

class ClientResponse::Connection : public std::enable_shared_from_this<ClientResponse::Connection> {
 public:
  Connection(io::Executor executor, std::string origin, Bytes header_limit);

  /// Resolves, asks the filter, connects, and greets with TLS for https.
  static io::Task<Result<std::shared_ptr<Connection>>> dial(std::shared_ptr<Client::Pool> pool, Url url,
                                                            AddressFilter allow, Deadline deadline);

  /// Sends a request and reads the head of its response.
  static io::Task<Result<>> exchange(std::shared_ptr<Connection> self, std::string head, std::string body,
                                     ResponseBody framing, Deadline deadline);

  static io::Task<Result<std::string>> read_body(std::shared_ptr<Connection> self, Deadline deadline);

  const ResponseParser& parser() const { return *parser_; }
  const std::string& origin() const { return origin_; }
  Address peer() const { return peer_; }
  /// Whether the last exchange failed before the peer said anything.
  bool heard_nothing() const { return heard_nothing_; }
  bool is_alive();
  Clock::time_point idle_since() const { return idle_since_; }

  /// Back to the pool when the response is complete and the peer allows it; closed otherwise.
  void finish();
  void close();

  std::weak_ptr<Client::Pool> pool;

 private:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;
  static io::Task<Result<Endpoints>> look_up(Url url, Deadline deadline);
  static io::Task<Result<>> connect(std::shared_ptr<Connection> self, boost::asio::ip::tcp::endpoint endpoint,
                                    Deadline deadline);
  static io::Task<Result<>> greet(std::shared_ptr<Connection> self, boost::asio::ssl::context* tls,
                                  std::string host, Deadline deadline);
  static io::Task<Result<>> read_head(std::shared_ptr<Connection> self, ResponseBody framing);
  static io::Task<Result<>> read_more(std::shared_ptr<Connection> self);

  void arm(Deadline deadline);
  void disarm();
  /// The Error for a failed operation.
  std::unexpected<Error> failure(std::string_view what, const boost::system::error_code& error) const;

  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  boost::asio::steady_timer watchdog_;
  std::uint64_t watch_ = 0;  // which arm() the watchdog belongs to
  bool timed_out_ = false;
  std::string origin_;
  Address peer_;
  Bytes header_limit_;
  Buffer input_;
  std::unique_ptr<ResponseParser> parser_;
  bool heard_nothing_ = true;
  Clock::time_point idle_since_;
};

}  // namespace prims::http

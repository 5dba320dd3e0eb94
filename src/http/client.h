// HTTP/1.1 client for http and https on the loop.
//
// Certificates are checked against the system's store (SSL_CERT_FILE and SSL_CERT_DIR are honoured) and the
// host's name. Connections are kept and used again, per origin. Redirects are the caller's business:
// `resolve()` in url.h helps.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/deadline.h"
#include "http/address.h"
#include "http/message.h"
#include "http/url.h"
#include "io/task.h"

namespace prims::http {

/// Sees each address that is about to be dialled (the very one, after name resolution); an Error forbids it.
using AddressFilter = std::function<Result<>(const Address&)>;

struct ClientOptions {
  std::string extra_ca_file;         ///< PEM; trusted besides the system's store
  Bytes header = kib(64);            ///< head of a response
  std::size_t idle_connections = 8;  ///< kept for later, per origin
};

struct ClientRequest {
  std::string method = "GET";
  Url url;          ///< user_info is sent as basic authentication unless an Authorization field is given
  Headers headers;  ///< Host, Content-Length and Connection are added
  std::string body;
  AddressFilter allow_address;  ///< empty: every address
  Deadline deadline;            ///< until the head of the response is there; never() is allowed
};

/// The body is read piece by piece. Dropping a response before its end closes its connection.
class ClientResponse {
 public:
  class Connection;
  explicit ClientResponse(std::shared_ptr<Connection> connection);
  ClientResponse(ClientResponse&&) noexcept;
  ClientResponse& operator=(ClientResponse&&) noexcept;
  ~ClientResponse();

  int status() const;
  const Headers& headers() const;
  /// The address that answered.
  Address peer() const;

  /// The next piece of the body (at most 64 KiB), empty at its end. A body cut short is Kind::unavailable.
  io::Task<Result<std::string>> read_some(Deadline deadline);

  /// The rest of the body. Kind::exhausted when it is larger than `limit`.
  io::Task<Result<std::string>> read_all(Bytes limit, Deadline deadline);

 private:
  std::shared_ptr<Connection> connection_;  // shared with the Task that reads
};

class Client {
 public:
  explicit Client(ClientOptions options = {});
  ~Client();

  /// Kind::denied: the filter forbade every address; Kind::unavailable: no such host, refused, reset, bad
  /// certificate, bad response; Kind::timed_out; Kind::invalid_input: a header field that is not well-formed.
  /// A GET or HEAD that meets a kept connection which has just died is sent again once.
  io::Task<Result<ClientResponse>> send(ClientRequest request);

 private:
  friend class ClientResponse;
  class Pool;
  static io::Task<Result<ClientResponse>> send_through(std::shared_ptr<Pool> pool, ClientRequest request);

  std::shared_ptr<Pool> pool_;  // shared with responses under way
};

}  // namespace prims::http

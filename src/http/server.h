// HTTP/1.1 server on the loop.
//
// One Task per connection reads a request completely, awaits the handler, then goes on with the next:
// pipelined requests wait their turn. Anything ambiguous about where a message ends is refused with 400 and
// the connection is closed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/unique_fd.h"
#include "http/message.h"
#include "io/cancellation.h"
#include "io/task.h"

namespace prims::http {

/// What the handler of one request answers with: either send() once, or open(), any number of write(),
/// finish(). A cheap handle; copies speak for the same request. Harmless after the peer has gone or the
/// handler has returned: calls fail with Kind::cancelled.
class Responder {
 public:
  class Exchange;
  explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  /// The whole answer, in one write.
  io::Task<Result<>> send(Response response);

  /// Sends the head of an answer whose body follows piece by piece (`head.body` is the first piece, may be
  /// empty). With a Content-Length field the pieces must add up to it; without, the body is chunked.
  io::Task<Result<>> open(Response head);
  /// Returns when the kernel has taken the piece, so a slow reader slows the writer.
  io::Task<Result<>> write(std::string piece);
  /// Without it, the stream is finished when the handler returns.
  io::Task<Result<>> finish();
  /// Cuts the connection, so that the peer sees that the answer is incomplete.
  void abort();

  bool started() const;

  /// Requested when the peer goes away or the server stops hard, also while nothing is being written. Running
  /// on is fine.
  std::shared_ptr<io::Cancellation> closed() const;

 private:
  std::shared_ptr<Exchange> exchange_;  // shared with the connection, which may end first
};

/// Called for every well-formed request. A handler that returns without an answer, or throws, makes a 500.
using Handler = std::function<io::Task<>(Request, Responder)>;

struct ServerLimits {
  Bytes header = kib(32);                  ///< request line and fields: 431
  Bytes body = mib(8);                     ///< 413
  Milliseconds header_time{10'000};        ///< from the first byte of a request to the end of its head: 408
  Milliseconds body_time{60'000};          ///< from there to the end of the body: 408
  Milliseconds idle_time{120'000};         ///< between requests: closed
  Milliseconds write_time{30'000};         ///< for one write that does not proceed: closed
  std::size_t connections = 1024;          ///< more are answered 503
  std::size_t connections_per_peer = 512;  ///< by address: 503
};

struct ListenAddress {
  enum class Need { required, if_available };

  std::string host;  ///< a numeric address
  std::uint16_t port = 0;
  Need need =
      Need::required;  ///< if_available: no error where this host has no such address (::1 without IPv6)
};

class Server {
 public:
  /// Listens on every address; those with port 0 share one free port. Kind::unavailable names the address
  /// that is taken.
  static Result<std::unique_ptr<Server>> listen(io::Executor executor, std::vector<ListenAddress> addresses,
                                                ServerLimits limits, Handler handler);

  /// Serves a TCP socket that already listens, wherever it was made.
  static Result<std::unique_ptr<Server>> adopt(io::Executor executor, UniqueFd listening, ServerLimits limits,
                                               Handler handler);

  /// Closes everything at once. Handlers that still run keep what they need and end by themselves.
  ~Server();

  /// The port of the first address.
  std::uint16_t port() const;
  /// "http://127.0.0.1:9000", one for each address.
  std::vector<std::string> urls() const;
  std::size_t connections() const;

  /// Stops accepting, closes idle connections, waits for running handlers. What is left at the deadline is
  /// closed hard (Responder::closed is requested) and waited for.
  io::Task<> drain(Deadline deadline);

 private:
  class State;
  explicit Server(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared with the connections
};

}  // namespace prims::http

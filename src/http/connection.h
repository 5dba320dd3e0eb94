// One connection of the server, and what a Responder stands for. Internal to this folder.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "http/buffer.h"
#include "http/parser.h"
#include "http/serialize.h"
#include "http/server.h"
#include "io/cancellation.h"
#include "io/event.h"
#include "io/task.h"

namespace prims::http {

/// What connections know of their server. Outlives them (they hold it).
struct ConnectionContext {
  ServerLimits limits;
  Handler handler;
  bool draining = false;
  io::Event request_begun;  // wakes the ticker
};

/// Deadlines are not timers: the server looks at all connections every few milliseconds (tick), so a request
/// costs no timer. The same look starts watching for a peer that goes away while a handler runs.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, std::string peer,
             std::shared_ptr<ConnectionContext> context);

  /// Serves requests until the connection ends.
  static io::Task<> run(std::shared_ptr<Connection> self);

  void tick(Clock::time_point now);
  /// Nobody answers any more: closes the socket and tells a running handler.
  void close_hard();
  void close_if_idle();
  const std::string& peer() const { return peer_; }

 private:
  friend class Responder::Exchange;

  enum class Phase { idle, head, body, handling, lingering };
  enum class Next { request, close };
  using Parts = std::array<std::string, 3>;  // written as one

  static io::Task<Next> serve_one(std::shared_ptr<Connection> self);
  static io::Task<bool> read_request(std::shared_ptr<Connection> self, RequestParser* parser);
  static io::Task<bool> welcome_body(std::shared_ptr<Connection> self, const RequestParser* parser);
  static io::Task<Next> handle(std::shared_ptr<Connection> self, Request request,
                               std::shared_ptr<Responder::Exchange> exchange);
  static io::Task<> refuse(std::shared_ptr<Connection> self, Refusal refusal);
  static io::Task<bool> read_more(std::shared_ptr<Connection> self);
  static io::Task<Result<>> write(std::shared_ptr<Connection> self, Parts parts);
  static io::Task<> linger(std::shared_ptr<Connection> self);

  void enter(Phase phase, Milliseconds time);
  void enter_handling();
  void expire();
  void watch();
  void take_what_arrived();
  void tell_handler();

  boost::asio::ip::tcp::socket socket_;
  std::string peer_;
  std::shared_ptr<ConnectionContext> context_;  // shared by all connections of the server
  Buffer input_;
  Phase phase_ = Phase::idle;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool expired_ = false;
  bool watching_ = false;
  bool input_ended_ = false;
  bool writing_ = false;
  unsigned writes_in_a_row_ = 0;
  std::shared_ptr<Responder::Exchange> exchange_;  // of the request being handled; shared with its Responders
};

/// One request and its answer.
class Responder::Exchange {
 public:
  enum class Stage { waiting, streaming, done };

  struct Traits {
    bool head_only = false;  ///< the answer to HEAD
    bool keep_alive = true;
    bool http_1_1 = true;
  };
  Exchange(Connection* connection, Traits traits) : connection_(connection), traits_(traits) {}

  static io::Task<Result<>> send(std::shared_ptr<Exchange> self, Response response);
  static io::Task<Result<>> open(std::shared_ptr<Exchange> self, Response head);
  static io::Task<Result<>> write(std::shared_ptr<Exchange> self, std::string piece);
  static io::Task<Result<>> finish(std::shared_ptr<Exchange> self);
  void abort();

  Stage stage() const { return stage_; }
  bool keep_alive() const { return traits_.keep_alive; }
  const std::shared_ptr<io::Cancellation>& closed() const { return closed_; }
  /// The handler has returned: later calls fail.
  void detach() {
    connection_ = nullptr;
    closed_->on_request({});  // its action may hold a Responder, and so this object
  }

 private:
  Result<> begin(const Response& response);
  std::string head_for(const Response& response, Framing framing, std::uint64_t length);
  Result<> choose_stream_framing(const Response& head);
  Result<> add_piece(std::array<std::string, 3>& parts, std::string piece);

  Connection* connection_;  // null after detach()
  Traits traits_;
  Framing framing_ = Framing::length;
  std::uint64_t remaining_ = 0;  // of a stream with a declared length
  Stage stage_ = Stage::waiting;
  std::shared_ptr<io::Cancellation> closed_ = std::make_shared<io::Cancellation>();
};

}  // namespace prims::http

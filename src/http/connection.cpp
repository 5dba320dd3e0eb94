#include "http/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"

namespace prims::http {
namespace asio = boost::asio;
namespace {

constexpr std::size_t kPipelinedBytes = 16 << 10;
constexpr Milliseconds kLingerTime{1000};
constexpr std::size_t kLingerBytes = 1 << 20;
/// So many writes in a row may succeed at once before other connections get their turn.
constexpr unsigned kTurn = 16;

/// A blank line before a request is skipped (RFC 9112 section 2.2).
std::size_t blank_lines(std::string_view bytes) {
  std::size_t count = 0;
  while (count < 4 && bytes.substr(count).starts_with("\r\n")) count += 2;
  return count;
}

Response plain_text(int status, const std::string& message) {
  return Response{
      .status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = message + "\n"};
}

std::span<iovec> advance(std::span<iovec> pieces, std::size_t count) {
  while (!pieces.empty() && count >= pieces.front().iov_len) {
    count -= pieces.front().iov_len;
    pieces = pieces.subspan(1);
  }
  if (count > 0) {
    pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + count;
    pieces.front().iov_len -= count;
  }
  return pieces;
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, std::string peer,
                       std::shared_ptr<ConnectionContext> context)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      context_(std::move(context)),
      input_(static_cast<std::size_t>(context_->limits.header.count) + kPipelinedBytes) {}

io::Task<> Connection::run(std::shared_ptr<Connection> self) {
  for (;;) {
    const Next next = co_await serve_one(self);
    if (next == Next::close) break;
  }
  co_await linger(self);
}

io::Task<Connection::Next> Connection::serve_one(std::shared_ptr<Connection> self) {
  RequestParser parser(self->context_->limits.header, self->context_->limits.body);
  const bool complete = co_await read_request(self, &parser);
  if (!complete) co_return Next::close;
  Request request = parser.take();
  request.peer = self->peer_;
  Responder::Exchange::Traits traits;
  traits.head_only = request.method == "HEAD";
  traits.http_1_1 = parser.is_http_1_1();
  traits.keep_alive = parser.is_http_1_1() && parser.keep_alive();
  auto exchange = std::make_shared<Responder::Exchange>(self.get(), traits);
  co_return co_await handle(self, std::move(request), std::move(exchange));
}

/// False: the connection is over, and its peer has been told why where that is any use.
io::Task<bool> Connection::read_request(std::shared_ptr<Connection> self, RequestParser* parser) {
  self->enter(Phase::idle, self->context_->limits.idle_time);
  for (;;) {
    if (self->phase_ == Phase::idle) self->input_.used(blank_lines(self->input_.view()));
    if (!self->input_.empty()) {
      if (self->phase_ == Phase::idle) self->enter(Phase::head, self->context_->limits.header_time);
      const auto used = parser->feed(self->input_.view());
      if (!used) {
        co_await refuse(self, used.error());
        co_return false;
      }
      self->input_.used(*used);
      if (parser->done()) co_return true;
      if (parser->head_done() && self->phase_ == Phase::head) {
        self->enter(Phase::body, self->context_->limits.body_time);
        const bool welcome = co_await welcome_body(self, parser);
        if (!welcome) co_return false;
      }
    } else if (self->context_->draining) {
      co_return false;
    }
    const bool more = co_await read_more(self);
    if (more) continue;
    if (self->expired_ && self->phase_ != Phase::idle) {
      Refusal late{408, "the request did not arrive in time"};
      co_await refuse(self, std::move(late));
    }
    co_return false;
  }
}

/// Answers an Expect field; false when it asks for something unknown.
io::Task<bool> Connection::welcome_body(std::shared_ptr<Connection> self, const RequestParser* parser) {
  const auto expected = parser->headers().get("Expect");
  if (!expected || !parser->is_http_1_1()) co_return true;
  if (!iequals(*expected, "100-continue")) {
    Refusal unknown{417, "unknown expectation"};
    co_await refuse(self, std::move(unknown));
    co_return false;
  }
  if (!self->input_.empty()) co_return true;  // the body is already on its way
  Parts parts;
  parts[0] = response_head(100, {}, {.framing = Framing::none});
  const auto written = co_await write(self, std::move(parts));
  co_return written.has_value();
}

io::Task<Connection::Next> Connection::handle(std::shared_ptr<Connection> self, Request request,
                                              std::shared_ptr<Responder::Exchange> exchange) {
  self->exchange_ = exchange;
  self->enter_handling();
  bool failed = false;
  try {
    io::Task<> handling = self->context_->handler(std::move(request), Responder(exchange));
    co_await std::move(handling);
  } catch (const std::exception& error) {
    log::error("a request handler failed: {}", error.what());
    failed = true;
  }
  Result<> answered;
  if (exchange->stage() == Responder::Exchange::Stage::waiting) {
    Response response = plain_text(500, "the server failed to answer");
    answered = co_await Responder::Exchange::send(exchange, std::move(response));
  } else if (failed) {
    exchange->abort();
  } else {
    answered = co_await Responder::Exchange::finish(exchange);
  }
  exchange->detach();
  self->exchange_.reset();
  const bool go_on =
      answered && !failed && !self->writing_ && self->socket_.is_open() && exchange->keep_alive();
  co_return go_on ? Next::request : Next::close;
}

io::Task<> Connection::refuse(std::shared_ptr<Connection> self, Refusal refusal) {
  Response response = plain_text(refusal.status, refusal.message);
  Parts parts;
  parts[0] =
      response_head(response.status, response.headers, {.length = response.body.size(), .close = true});
  parts[1] = std::move(response.body);
  [[maybe_unused]] const auto written = co_await write(self, std::move(parts));
}

io::Task<bool> Connection::read_more(std::shared_ptr<Connection> self) {
  self->writes_in_a_row_ = 0;
  if (self->input_ended_) co_return false;
  const std::span<char> room = self->input_.room();
  if (room.empty()) co_return false;
  auto [error, count] = co_await self->socket_.async_read_some(asio::buffer(room.data(), room.size()),
                                                               asio::as_tuple(asio::use_awaitable));
  if (error) co_return false;
  self->input_.filled(count);
  co_return true;
}

io::Task<Result<>> Connection::write(std::shared_ptr<Connection> self, Parts parts) {
  if (self->writing_) co_return fail(Kind::internal, "two writes at once on one connection");
  self->writing_ = true;
  if (++self->writes_in_a_row_ >= kTurn) {
    self->writes_in_a_row_ = 0;
    co_await asio::post(self->socket_.get_executor(), asio::use_awaitable);
  }
  const auto deadline_before = self->deadline_;
  std::array<iovec, 3> pieces{};
  for (std::size_t i = 0; i < parts.size(); ++i) pieces[i] = {parts[i].data(), parts[i].size()};
  std::span<iovec> left(pieces);
  while (!left.empty()) {
    if (left.front().iov_len == 0) {
      left = left.subspan(1);
      continue;
    }
    if (!self->socket_.is_open()) {
      self->writing_ = false;
      co_return fail(Kind::cancelled, "the connection is closed");
    }
    msghdr message{};
    message.msg_iov = left.data();
    message.msg_iovlen = left.size();
    const ssize_t sent = ::sendmsg(self->socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      left = advance(left, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      self->deadline_ = Clock::now() + self->context_->limits.write_time;
      auto [error] = co_await self->socket_.async_wait(asio::ip::tcp::socket::wait_write,
                                                       asio::as_tuple(asio::use_awaitable));
      self->deadline_ = deadline_before;
      if (error) self->close_hard();
    } else if (errno != EINTR) {
      self->close_hard();
    }
  }
  self->writing_ = false;
  co_return Result<>();
}

/// Closing with input unread would reset the connection and could take the last answer with it.
io::Task<> Connection::linger(std::shared_ptr<Connection> self) {
  boost::system::error_code ignored;
  self->socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  self->enter(Phase::lingering, kLingerTime);
  for (std::size_t total = 0; total < kLingerBytes;) {
    self->input_.used(self->input_.view().size());
    const bool more = co_await read_more(self);
    if (!more) break;
    total += self->input_.view().size();
  }
  self->socket_.close(ignored);
}

void Connection::enter(Phase phase, Milliseconds time) {
  phase_ = phase;
  expired_ = false;
  deadline_ = Clock::now() + time;
}

void Connection::enter_handling() {
  phase_ = Phase::handling;
  deadline_ = Clock::time_point::max();
  if (!context_->request_begun.is_set()) context_->request_begun.set();
}

void Connection::tick(Clock::time_point now) {
  if (now >= deadline_) return expire();
  if (phase_ == Phase::handling && !input_ended_) watch();
}

void Connection::expire() {
  expired_ = true;
  deadline_ = Clock::time_point::max();
  if (writing_) return close_hard();
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

/// A wait that is left over when the handler returns does no harm: reads queue behind it.
void Connection::watch() {
  if (watching_ || !socket_.is_open() || input_.full()) return;
  watching_ = true;
  auto arrived = [self = shared_from_this()](const boost::system::error_code& error) {
    self->watching_ = false;
    if (!error && self->phase_ == Phase::handling) self->take_what_arrived();
  };
  socket_.async_wait(asio::ip::tcp::socket::wait_read, std::move(arrived));
}

void Connection::take_what_arrived() {
  const std::span<char> room = input_.room();
  if (room.empty()) return;
  const ssize_t got = ::recv(socket_.native_handle(), room.data(), room.size(), MSG_DONTWAIT);
  if (got > 0) {
    input_.filled(static_cast<std::size_t>(got));
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    // A peer that has only shut down its sending side looks the same; the answer is still sent.
    input_ended_ = true;
    return tell_handler();
  }
  watch();
}

void Connection::tell_handler() {
  if (const auto exchange = exchange_) exchange->closed()->request();
}

void Connection::close_hard() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  tell_handler();
}

void Connection::close_if_idle() {
  if (phase_ == Phase::idle) close_hard();
}

}  // namespace prims::http

// What a Responder does with its connection.
#include <charconv>

#include "http/connection.h"

namespace prims::http {
namespace {

bool has_no_body(int status) {
  return status < 200 || status == 204 || status == 304;
}

}  // namespace

io::Task<Result<>> Responder::send(Response response) {
  return Exchange::send(exchange_, std::move(response));
}
io::Task<Result<>> Responder::open(Response head) {
  return Exchange::open(exchange_, std::move(head));
}
io::Task<Result<>> Responder::write(std::string piece) {
  return Exchange::write(exchange_, std::move(piece));
}
io::Task<Result<>> Responder::finish() {
  return Exchange::finish(exchange_);
}
void Responder::abort() {
  exchange_->abort();
}
bool Responder::started() const {
  return exchange_->stage() != Exchange::Stage::waiting;
}
std::shared_ptr<io::Cancellation> Responder::closed() const {
  return exchange_->closed();
}

Result<> Responder::Exchange::begin(const Response& response) {
  if (connection_ == nullptr) return fail(Kind::cancelled, "the request is over");
  if (stage_ != Stage::waiting) return fail(Kind::internal, "the request has been answered already");
  if (!response.headers.well_formed())
    return fail(Kind::internal, "a header field of the answer is malformed");
  const bool may_stay =
      !connection_->context_->draining && !response.headers.has_token("Connection", "close");
  traits_.keep_alive = traits_.keep_alive && may_stay;
  return {};
}

std::string Responder::Exchange::head_for(const Response& response, Framing framing, std::uint64_t length) {
  HeadOptions options;
  options.framing = framing;
  options.length = length;
  options.close = !traits_.keep_alive;
  return response_head(response.status, response.headers, options);
}

io::Task<Result<>> Responder::Exchange::send(std::shared_ptr<Exchange> self, Response response) {
  PRIMS_CO_RETURN_ON_ERROR(self->begin(response));
  self->stage_ = Stage::done;
  const bool bodyless = has_no_body(response.status);
  Connection::Parts parts;
  parts[0] = self->head_for(response, bodyless ? Framing::none : Framing::length, response.body.size());
  if (!bodyless && !self->traits_.head_only) parts[1] = std::move(response.body);
  co_return co_await Connection::write(self->connection_->shared_from_this(), std::move(parts));
}

Result<> Responder::Exchange::choose_stream_framing(const Response& head) {
  const auto declared = head.headers.get("Content-Length");
  framing_ = traits_.http_1_1 ? Framing::chunked : Framing::until_close;
  if (has_no_body(head.status)) framing_ = Framing::none;
  if (!declared || framing_ == Framing::none) return {};
  const char* const end = declared->data() + declared->size();
  const auto [stopped, error] = std::from_chars(declared->data(), end, remaining_);
  if (error != std::errc() || stopped != end)
    return fail(Kind::internal, "the answer's Content-Length is not a number");
  framing_ = Framing::length;
  return {};
}

io::Task<Result<>> Responder::Exchange::open(std::shared_ptr<Exchange> self, Response head) {
  PRIMS_CO_RETURN_ON_ERROR(self->begin(head));
  PRIMS_CO_RETURN_ON_ERROR(self->choose_stream_framing(head));
  self->stage_ = Stage::streaming;
  self->connection_->watch();
  Connection::Parts parts;
  parts[0] = self->head_for(head, self->framing_, self->remaining_);
  PRIMS_CO_RETURN_ON_ERROR(self->add_piece(parts, std::move(head.body)));
  co_return co_await Connection::write(self->connection_->shared_from_this(), std::move(parts));
}

Result<> Responder::Exchange::add_piece(std::array<std::string, 3>& parts, std::string piece) {
  if (piece.empty() || traits_.head_only || framing_ == Framing::none) return {};
  if (framing_ == Framing::length && piece.size() > remaining_) {
    abort();
    return fail(Kind::internal, "the answer is longer than its Content-Length");
  }
  if (framing_ == Framing::length) remaining_ -= piece.size();
  parts[1] = std::move(piece);
  if (framing_ == Framing::chunked) {
    parts[0] += chunk_head(parts[1].size());
    parts[2] = "\r\n";
  }
  return {};
}

io::Task<Result<>> Responder::Exchange::write(std::shared_ptr<Exchange> self, std::string piece) {
  if (self->connection_ == nullptr) co_return fail(Kind::cancelled, "the request is over");
  if (self->stage_ != Stage::streaming) co_return fail(Kind::internal, "no stream is open");
  Connection::Parts parts;
  PRIMS_CO_RETURN_ON_ERROR(self->add_piece(parts, std::move(piece)));
  co_return co_await Connection::write(self->connection_->shared_from_this(), std::move(parts));
}

io::Task<Result<>> Responder::Exchange::finish(std::shared_ptr<Exchange> self) {
  if (self->connection_ == nullptr) co_return fail(Kind::cancelled, "the request is over");
  if (self->stage_ != Stage::streaming) co_return Result<>();
  if (self->framing_ == Framing::length && self->remaining_ > 0 && !self->traits_.head_only) {
    self->abort();
    co_return fail(Kind::internal, "the answer is shorter than its Content-Length");
  }
  self->stage_ = Stage::done;
  Connection::Parts parts;
  if (self->framing_ == Framing::chunked && !self->traits_.head_only) parts[0] = "0\r\n\r\n";
  co_return co_await Connection::write(self->connection_->shared_from_this(), std::move(parts));
}

void Responder::Exchange::abort() {
  if (connection_ == nullptr) return;
  stage_ = Stage::done;
  traits_.keep_alive = false;
  connection_->close_hard();
}

}  // namespace prims::http

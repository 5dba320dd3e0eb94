#include "http/parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/optional.hpp>
#include <limits>

namespace prims::http {
namespace {

namespace beast_http = boost::beast::http;
using beast_http::field;
using boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

constexpr std::size_t kMaxFields = 128;
constexpr std::size_t kBodyReserve = 1 << 20;
/// A chunk's size line, or a trailer, may not be longer.
constexpr std::size_t kMaxChunkHead = 8192;

std::string_view to_std(string_view text) {
  return {text.data(), text.size()};
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

/// Looks for the end of a head line by line as bytes arrive, and refuses what Beast would accept.
class HeadScanner {
 public:
  /// The head's length with its empty line, 0 while incomplete.
  Parsed<std::size_t> scan(std::string_view bytes, std::size_t limit) {
    for (;;) {
      const std::size_t newline = bytes.find('\n', scanned_);
      if (newline == std::string_view::npos) break;
      if (newline == 0 || bytes[newline - 1] != '\r') return std::unexpected(Refusal{400, "bare line feed"});
      if (newline + 1 == bytes.size()) break;  // what follows decides whether the line is folded
      const char next = bytes[newline + 1];
      if (next == ' ' || next == '\t') return std::unexpected(Refusal{400, "folded header line"});
      if (next == '\r' && newline + 2 < bytes.size() && bytes[newline + 2] == '\n')
        return finish(newline + 3, limit);
      if (next == '\r' && newline + 2 == bytes.size()) break;
      scanned_ = newline + 1;
    }
    if (bytes.size() > limit) return std::unexpected(too_large());
    return 0;
  }

 private:
  static Refusal too_large() { return {431, "the head of the message is too large"}; }
  static Parsed<std::size_t> finish(std::size_t length, std::size_t limit) {
    if (length > limit) return std::unexpected(too_large());
    return length;
  }

  std::size_t scanned_ = 0;
};

Refusal to_refusal(const ErrorCode& error) {
  if (error == beast_http::error::header_limit) return {431, "the head of the message is too large"};
  if (error == beast_http::error::body_limit) return {413, "the body is too large"};
  if (error == beast_http::error::bad_version) return {505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  return {400, error.message()};
}

/// What requests and responses have in common: fields, body, and the checks on framing.
template <bool kIsRequest>
class Parser : public beast_http::basic_parser<kIsRequest> {
 public:
  Headers headers;
  std::string body;
  std::string method;
  std::string target;
  int version = 11;
  int status_code = 0;
  std::string complaint;  // why on_..._impl refused
  int complaint_status = 400;

 protected:
  void on_request_impl(beast_http::verb, string_view method_text, string_view target_text, int number,
                       ErrorCode& error) final {
    method.assign(method_text.data(), method_text.size());
    target.assign(target_text.data(), target_text.size());
    version = number;
    if (has_control(target)) refuse("control character in the request target", error);
  }
  void on_response_impl(int code, string_view, int number, ErrorCode&) final {
    status_code = code;
    version = number;
  }

  void on_field_impl(field id, string_view name, string_view value, ErrorCode& error) final {
    if (in_trailer_) return;  // trailers are read and dropped: nothing here has a use for them
    if (headers.size() >= kMaxFields) {
      complaint_status = 431;
      return refuse("too many header fields", error);
    }
    const std::string_view text = to_std(value);
    if (has_control(text)) return refuse("control character in a header field", error);
    if (id == field::content_length) {
      if (!all_digits(text) || seen_length_) return refuse("Content-Length is not one plain number", error);
      seen_length_ = true;
    }
    if (id == field::transfer_encoding) {
      if (!iequals(text, "chunked") || seen_encoding_) return refuse("unknown Transfer-Encoding", error);
      if (version < 11) return refuse("Transfer-Encoding in HTTP/1.0", error);
      seen_encoding_ = true;
    }
    headers.add(std::string(name.data(), name.size()), std::string(text));
  }

  void on_header_impl(ErrorCode& error) final {
    in_trailer_ = true;
    if constexpr (kIsRequest) {
      const std::size_t hosts = headers.count("Host");
      if (hosts > 1 || (hosts == 0 && version >= 11)) refuse("exactly one Host header is needed", error);
    }
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode&) final {
    if (kIsRequest && length)
      body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(*length, kBodyReserve)));
  }
  std::size_t on_body_impl(string_view piece, ErrorCode&) final {
    body.append(piece.data(), piece.size());
    return piece.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view extensions, ErrorCode& error) final {
    if (has_control(to_std(extensions))) refuse("control character in a chunk extension", error);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view piece, ErrorCode&) final {
    body.append(piece.data(), piece.size());
    return piece.size();
  }
  void on_finish_impl(ErrorCode&) final {}

 private:
  void refuse(const char* why, ErrorCode& error) {
    complaint = why;
    error = beast_http::error::bad_value;
  }

  bool in_trailer_ = false;
  bool seen_length_ = false;
  bool seen_encoding_ = false;
};

/// Drives a Parser over a buffer: first the complete head, then the body as far as it has arrived.
template <bool kIsRequest>
struct Driver {
  Parser<kIsRequest> parser;
  HeadScanner scanner;
  std::size_t header_limit;

  explicit Driver(Bytes limit) : header_limit(static_cast<std::size_t>(limit.count)) {
    parser.header_limit(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(limit.count + 1, std::numeric_limits<std::uint32_t>::max())));
  }

  Parsed<std::size_t> feed(std::string_view bytes) {
    if (parser.is_done() || bytes.empty()) return 0;
    std::size_t used = 0;
    if (!parser.is_header_done()) {
      const auto length = scanner.scan(bytes, header_limit);
      if (!length) return std::unexpected(length.error());
      if (*length == 0) return 0;
      const auto head = put(bytes.substr(0, *length));
      if (!head) return head;
      if (!parser.is_header_done()) return std::unexpected(Refusal{400, "malformed head"});
      used = *length;
    }
    while (!parser.is_done() && used < bytes.size()) {
      const auto body = put(bytes.substr(used));
      if (!body) return body;
      if (*body == 0) break;
      used += *body;
    }
    if (!parser.is_done() && bytes.size() - used > kMaxChunkHead) {
      return std::unexpected(Refusal{400, "a chunk header or trailer is too large"});
    }
    return used;
  }

  Parsed<std::size_t> put(std::string_view bytes) {
    ErrorCode error;
    const std::size_t used = parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    if (error && error != beast_http::error::need_more) return std::unexpected(refusal(error));
    return used;
  }

  Refusal refusal(const ErrorCode& error) {
    if (!parser.complaint.empty()) return {parser.complaint_status, parser.complaint};
    return to_refusal(error);
  }
};

}  // namespace

struct RequestParser::Impl : Driver<true> {
  using Driver::Driver;
};

RequestParser::RequestParser(Bytes header_limit, Bytes body_limit)
    : impl_(std::make_unique<Impl>(header_limit)) {
  impl_->parser.body_limit(body_limit.count);
}
RequestParser::~RequestParser() = default;

Parsed<std::size_t> RequestParser::feed(std::string_view bytes) {
  if (!head_done() && !bytes.empty() && !is_letter(bytes.front())) {
    return std::unexpected(Refusal{400, "this is not an HTTP request"});  // a TLS greeting, for example
  }
  return impl_->feed(bytes);
}
bool RequestParser::head_done() const {
  return impl_->parser.is_header_done();
}
bool RequestParser::done() const {
  return impl_->parser.is_done();
}
bool RequestParser::is_http_1_1() const {
  return impl_->parser.version >= 11;
}
bool RequestParser::keep_alive() const {
  return impl_->parser.keep_alive();
}

const Headers& RequestParser::headers() const {
  return impl_->parser.headers;
}

Request RequestParser::take() {
  Request request;
  request.method = std::move(impl_->parser.method);
  request.target = std::move(impl_->parser.target);
  request.headers = std::move(impl_->parser.headers);
  request.body = std::move(impl_->parser.body);
  return request;
}

struct ResponseParser::Impl : Driver<false> {
  using Driver::Driver;
};

ResponseParser::ResponseParser(Bytes header_limit, ResponseBody body)
    : impl_(std::make_unique<Impl>(header_limit)) {
  impl_->parser.body_limit(boost::none);
  impl_->parser.skip(body == ResponseBody::none);
}
ResponseParser::~ResponseParser() = default;

Parsed<std::size_t> ResponseParser::feed(std::string_view bytes) {
  return impl_->feed(bytes);
}

Parsed<void> ResponseParser::feed_end() {
  if (impl_->parser.is_done()) return {};
  if (!impl_->parser.is_header_done()) return std::unexpected(Refusal{502, "the connection was closed"});
  ErrorCode error;
  impl_->parser.put_eof(error);
  if (error) return std::unexpected(Refusal{502, "the response was cut short"});
  return {};
}

bool ResponseParser::head_done() const {
  return impl_->parser.is_header_done();
}
bool ResponseParser::done() const {
  return impl_->parser.is_done();
}
bool ResponseParser::keep_alive() const {
  return impl_->parser.keep_alive();
}
int ResponseParser::status() const {
  return impl_->parser.status_code;
}
const Headers& ResponseParser::headers() const {
  return impl_->parser.headers;
}
std::string ResponseParser::take_body() {
  return std::exchange(impl_->parser.body, {});
}
std::size_t ResponseParser::body_size() const {
  return impl_->parser.body.size();
}

}  // namespace prims::http

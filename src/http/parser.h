// Bytes to messages, one parser per message. Strict where leniency lets two programs see two different
// messages: the head's lines end in CRLF and are never folded, and there is exactly one way to tell where a
// body ends.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "http/message.h"

namespace prims::http {

/// What is wrong with a message: the status that tells its sender, and a sentence.
struct Refusal {
  int status = 400;
  std::string message;
};

/// feed() takes what it can use and returns how many bytes that were; the rest is given again, with more
/// behind it.
template <class T>
using Parsed = std::expected<T, Refusal>;

class RequestParser {
 public:
  RequestParser(Bytes header_limit, Bytes body_limit);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  Parsed<std::size_t> feed(std::string_view bytes);

  bool head_done() const;
  bool done() const;
  bool is_http_1_1() const;
  /// The sender allows another request on the connection.
  bool keep_alive() const;
  const Headers& headers() const;
  /// The request, once done. Its peer is left to the caller.
  Request take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

enum class ResponseBody { by_framing, none };  ///< none: the answer to a HEAD request

class ResponseParser {
 public:
  ResponseParser(Bytes header_limit, ResponseBody body);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  Parsed<std::size_t> feed(std::string_view bytes);
  /// The peer has closed: the end of some bodies, an error in all others.
  Parsed<void> feed_end();

  bool head_done() const;
  bool done() const;
  bool keep_alive() const;
  int status() const;
  const Headers& headers() const;
  /// What has arrived of the body since the last call.
  std::string take_body();
  /// Decoded bytes that wait for take_body().
  std::size_t body_size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prims::http

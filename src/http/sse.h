// Server-sent events: the text format, both ways (WHATWG HTML, "Server-sent events").
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "http/client.h"
#include "io/task.h"

namespace prims::http {

struct SseEvent {
  std::string event;  ///< empty: "message"
  std::string data;
  std::optional<std::string> id;
  std::optional<int> retry;  ///< milliseconds
};

/// One event as it goes over the wire; line breaks in `data` become several data lines.
std::string encode(const SseEvent& event);
/// A comment line, a sign of life that readers skip.
std::string encode_comment(std::string_view text);

/// Takes bytes as they arrive, gives complete events.
class SseParser {
 public:
  explicit SseParser(Bytes event_limit = mib(16)) : limit_(event_limit.count) {}

  /// Kind::exhausted when one event outgrows the limit.
  Result<> feed(std::string_view bytes);
  std::optional<SseEvent> next();

 private:
  void take_line(std::string_view line);

  std::size_t limit_;
  std::string line_;
  bool after_carriage_return_ = false;
  bool at_start_ = true;
  SseEvent current_;
  bool has_data_ = false;
  std::deque<SseEvent> ready_;
};

/// Events of a response whose Content-Type is text/event-stream.
class SseReader {
 public:
  explicit SseReader(ClientResponse response, Bytes event_limit = mib(16))
      : response_(std::move(response)), parser_(event_limit) {}

  /// Empty at the end of the stream.
  io::Task<Result<std::optional<SseEvent>>> next(Deadline deadline);

 private:
  ClientResponse response_;
  SseParser parser_;
};

}  // namespace prims::http

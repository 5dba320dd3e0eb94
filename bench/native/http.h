// HTTP/1.1 answers as they arrive on a connection that is kept open.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bench {

/// Collects the bytes of one answer and knows when the last one is there.
class Answer {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// Whether the answer is whole: as many bytes as Content-Length says, or the last chunk.
  bool complete();
  bool ok() const { return bytes_.starts_with("HTTP/1.1 200"); }
  const std::string& bytes() const { return bytes_; }
  void clear();

 private:
  bool read_head();
  bool skip_chunks();

  std::string bytes_;
  std::size_t body_ = 0;    ///< where it begins; 0: the head is not whole yet
  std::size_t cursor_ = 0;  ///< end of what is known: of the body, or the next chunk's head
  bool chunked_ = false;
};

/// A socket of 127.0.0.1 with TCP_NODELAY that does not block.
int connect_to(int port);

/// `Name: value` of a head in lower case, or nothing.
std::string header_value(std::string_view head, std::string_view name);

}  // namespace bench

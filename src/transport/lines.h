// Messages as lines, both ways: what stdio needs on either side of it.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "io/event.h"
#include "io/stream.h"

namespace prims::transport {

/// Reads lines of at most a limit. A longer one is skipped to its end and reported as such, and reading goes
/// on.
class LineReader {
 public:
  struct Line {
    enum class Kind { whole, too_long };
    Kind kind = Kind::whole;
    std::string text;  ///< without the line break; empty when too long
  };

  /// `stream` must outlive the reader.
  LineReader(io::Stream& stream, Bytes limit) : stream_(stream), limit_(limit) {}

  /// nullopt at the end of input; a last line without a line break counts.
  io::Task<Result<std::optional<Line>>> next();

 private:
  std::optional<Line> take_line();

  io::Stream& stream_;
  Bytes limit_;
  std::string buffer_;
  std::size_t start_ = 0;    ///< of what is unread in buffer_
  std::size_t scanned_ = 0;  ///< up to here there is no line break
  bool skipping_ = false;    ///< inside a line that is too long
  bool at_end_ = false;
};

/// Writes lines from one bounded queue, one writer, so that lines never mix.
class LineWriter {
 public:
  static constexpr std::size_t kRoom = 256;

  /// `stream` must outlive the writer.
  explicit LineWriter(io::Stream& stream) : stream_(stream) {}

  /// Waits for room. Kind::cancelled once closed.
  io::Task<Result<>> send(std::string line);
  /// For what its number elsewhere bounds (one response per call in flight): never waits, never refused while
  /// open.
  void push(std::string line);
  /// For what may be lost: dropped when the reader is behind.
  void offer(std::string line);

  /// Writes until close(), then what is left. Ends early with the Error of a write.
  io::Task<Result<>> run();
  void close();

 private:
  io::Stream& stream_;
  std::deque<std::string> queue_;
  bool closed_ = false;
  io::Event changed_;
  io::Event room_;
};

}  // namespace prims::transport

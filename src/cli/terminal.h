// Words for the person at the terminal. Data goes to standard output, everything said here to standard error.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace prims::cli {

/// Writes everything, waiting for a slow reader. Kind::cancelled: nobody reads any more.
Result<> write_all(int fd, std::string_view text);

/// Standard output for `data`; nobody reading is not worth a word.
void print(std::string_view data);

/// "prims: ..." on standard error.
void complain(std::string_view message);

/// Colour on `fd`: a terminal that is not dumb, and NO_COLOR is not set.
bool wants_colour(int fd);

/// Foreign text for `fd`: control characters that could steer a terminal are taken out when it is one.
std::string tame(int fd, std::string text);

/// What is being prepared. One line that changes on a terminal, otherwise a new line at most every five
/// seconds.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view sentence);
  /// Takes the line back before other output.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool visible_ = false;
  Clock::time_point last_ = Clock::time_point::min();
};

}  // namespace prims::cli

// Programs that are started to be measured.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "timing.h"

namespace bench {

/// A started program with a pipe to its standard input and one from its standard output. Its standard error
/// is ours.
class Child {
 public:
  explicit Child(const std::vector<std::string>& line);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  void write(const std::string& text);
  /// Up to the next line end. Ends this program when there is none.
  std::string read_line();
  /// The same, or nothing when no line is there by `end` (CLOCK_MONOTONIC; 0: does not wait).
  std::optional<std::string> read_line_until(Nanoseconds end);
  /// Up to the end of its output.
  std::string read_all();
  void close_input();
  /// Its exit status as waitpid has it.
  int wait();

 private:
  bool fill();

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string buffer_;
};

}  // namespace bench

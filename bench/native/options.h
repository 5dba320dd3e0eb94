// Command lines of the form `probe COMMAND --name value ... [-- PROGRAM ARGUMENT...]`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "timing.h"

namespace bench {

class Options {
 public:
  Options(int argc, char** argv);

  const std::string& command() const { return command_; }
  const std::vector<std::string>& program() const { return program_; }

  std::string text(const std::string& name) const;  ///< empty when not given
  std::int64_t number(const std::string& name, std::int64_t otherwise) const;

  /// --count, --rate (calls a second), --start (of CLOCK_MONOTONIC, in nanoseconds), --warm-up
  Schedule schedule() const;
  std::int64_t warm_up() const { return number("warm-up", 0); }

 private:
  std::string command_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> program_;
};

}  // namespace bench

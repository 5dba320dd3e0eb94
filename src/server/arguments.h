// The arguments of run_code, read as they were meant.
//
// Clients send lists as JSON text, numbers as strings and null for what they leave out; all of that is read.
// What cannot be read is refused by name with the accepted form, and nothing is ever dropped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "json/json.h"

namespace prims::server {

struct RunArguments {
  std::string code;
  std::vector<std::string> requirements;
  std::optional<std::string> input;     ///< standard input
  std::optional<Milliseconds> timeout;  ///< none: the default of the settings
};

struct ArgumentLimits {
  std::size_t code_length = 20'000;
  Milliseconds max_timeout{3'600'000};
  Bytes input_size = mib(8);
};

/// An Error of kind invalid_input holds one sentence for the model.
Result<RunArguments> read_run_arguments(const json::Object& arguments, const ArgumentLimits& limits);

}  // namespace prims::server

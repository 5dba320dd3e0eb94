// Runs a trusted program of the operator (an interpreter, pip) on the host and collects what it prints.
// Blocking: call it from a worker or before the loop runs. Nothing that came from a user is ever run here.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/result.h"

namespace prims::layers {

struct ToolCommand {
  std::vector<std::string> argv;         ///< argv[0] is an absolute path
  std::vector<std::string> environment;  ///< NAME=value, complete
  Bytes output_limit = mib(1);           ///< per stream; more is read and dropped
};

struct ToolOutput {
  int status = 0;  ///< exit status; 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

/// An Error when the program cannot be started or does not end in time (it is killed then).
Result<ToolOutput> run_tool(const ToolCommand& command, Deadline deadline);

}  // namespace prims::layers

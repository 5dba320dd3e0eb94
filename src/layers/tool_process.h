// Runs a trusted program of the operator (an interpreter, pip) on the host and collects what it prints.
// Nothing that came from a user is ever run here. The program has a process group of its own, which ends with
// it.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/result.h"
#include "io/task.h"

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

/// On the loop. An Error when the program cannot be started, does not end in time or the Task is asked to end
/// (it is killed then).
io::Task<Result<ToolOutput>> run_tool(ToolCommand command, Deadline deadline);

/// The same before there is a loop: blocks.
Result<ToolOutput> run_tool_blocking(const ToolCommand& command, Deadline deadline);

}  // namespace prims::layers

// A program of the operator's choice that serves MCP on its standard streams.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/stream.h"
#include "io/task.h"

namespace prims::upstream {

struct Command {
  std::vector<std::string> argv;  ///< argv[0] is looked up in PATH
  /// Set besides the few variables that are passed on (HOME, LOGNAME, PATH, SHELL, TERM, USER).
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;  ///< empty: ours
};

/// Runs in a process group of its own, which goes with this object.
class ChildProcess {
 public:
  static Result<std::unique_ptr<ChildProcess>> start(const Command& command);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Kills the group if it still runs.
  ~ChildProcess();

  io::Stream& in() { return in_; }
  io::Stream& out() { return out_; }
  io::Stream& errors() { return errors_; }

  /// Closes the program's input and waits; then SIGTERM, then SIGKILL, each after a grace.
  io::Task<> stop(Milliseconds grace);

 private:
  ChildProcess(int pid, UniqueFd pidfd, UniqueFd in, UniqueFd out, UniqueFd errors);
  void signal_group(int number) const;

  int pid_;  ///< 0 once it was waited for
  UniqueFd pidfd_;
  io::Stream in_;
  io::Stream out_;
  io::Stream errors_;
};

}  // namespace prims::upstream

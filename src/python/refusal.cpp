#include "python/refusal.h"

#include <string_view>

#include "base/text.h"
#include "sandbox/rlimits.h"

namespace prims::python {
namespace {

/// Of the interpreter's traceback on standard error: the innermost call, which may be spread over lines.
constexpr std::size_t kInnermostLines = 12;
/// Of a thread (RLIMIT_STACK), all of it counted at once.
constexpr Bytes kThreadStack = mib(8);

/// os.fork, pty.fork, and fork_exec below subprocess and multiprocessing. A socket or pipe that is not ready
/// raises the same exception.
bool failed_to_fork(const RunResult& result) {
  if (result.error->type != "BlockingIOError" || !result.error->message.starts_with("[Errno 11]"))
    return false;
  const std::string& end = result.err.tail.empty() ? result.err.head : result.err.tail;
  return last_lines(end, kInnermostLines).find("fork") != std::string_view::npos;
}

/// Python has one message for every reason. It was not memory where there was room for the stacks of as many
/// threads as are allowed.
bool failed_to_start_thread(const RunResult& result, const sandbox::Limits& limits) {
  if (result.error->type != "RuntimeError" || result.error->message != "can't start new thread") return false;
  const Bytes most{limits.processes * kThreadStack.count + result.usage.peak_memory.count};
  return most <= sandbox::data_limit(limits.memory);
}

}  // namespace

std::optional<sandbox::Outcome> refused_by_limit(const RunResult& result, const sandbox::Limits& limits,
                                                 const sandbox::Enforcement& enforcement) {
  const auto* exited = std::get_if<sandbox::Exited>(&result.outcome);
  if (exited == nullptr || exited->code == 0 || !result.error) return std::nullopt;
  if (enforcement.memory.starts_with("rlimit") && result.error->type.ends_with("MemoryError")) {
    return sandbox::OutOfMemory{limits.memory, result.usage.peak_memory};
  }
  const bool refused = failed_to_fork(result) || failed_to_start_thread(result, limits);
  if (enforcement.processes.starts_with("rlimit") && refused) {
    return sandbox::ProcessLimit{limits.processes, limits.processes, exited->code};
  }
  return std::nullopt;
}

}  // namespace prims::python

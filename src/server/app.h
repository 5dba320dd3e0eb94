// The program as a whole: settings to running objects. The command line calls these three and reports.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/cancellation.h"
#include "json/json.h"
#include "python/runner.h"
#include "server/settings.h"

namespace prims::server {

/// Exit statuses that are promised to scripts (docs/cli.md).
namespace exit_status {
inline constexpr int kOk = 0;
inline constexpr int kError = 1;
inline constexpr int kUsage = 2;
inline constexpr int kTimeout = 124;
inline constexpr int kSandboxFailed = 125;
inline constexpr int kInterrupted = 130;
inline constexpr int kOutOfMemory = 137;
inline constexpr int kSignalBase = 128;
}  // namespace exit_status

/// One program for `prims run`.
struct RunRequest {
  std::string code;
  std::vector<std::string> arguments;  ///< sys.argv[1:]
  std::optional<python::Input> input;  ///< standard input; none: end of file at once
  std::vector<std::string> requirements;
  std::optional<Milliseconds> timeout;  ///< none: Settings::timeout
  python::OutputSink on_output;         ///< raw bytes as they come; may be empty
  std::function<void(const std::string&)>
      on_progress;  ///< package preparation, one sentence each; may be empty
  std::optional<std::filesystem::path> output_directory;  ///< artifacts are copied here after the run
  /// Ends the run from inside a sink (nobody reads its output any more). Never null.
  std::shared_ptr<io::Cancellation> cancellation = std::make_shared<io::Cancellation>();
};

struct RunOutcome {
  json::Object result;  ///< the object that the MCP tool returns as structuredContent
  int exit_status = 0;  ///< the program's own, or one of exit_status
};

/// Leaves the process at once when the engine could not be stopped: destroying it would pull the rug from
/// under its tasks.
void leave_unless(const Result<>& stopped, int status);

/// Serves HTTP until SIGTERM or SIGINT. Prints the URL on standard output once ready. The return value is the
/// exit status.
int serve(const Settings& settings);

/// Serves MCP on standard input and output until the input ends. Creates nothing before the first tool call.
int stdio(const Settings& settings);

/// Runs one program without a server. SIGINT and SIGTERM end it (130, 143). A fault outside the program (no
/// isolation here, no interpreter, no state directory) is told in the result, too.
RunOutcome run_once(const Settings& settings, RunRequest request);

}  // namespace prims::server

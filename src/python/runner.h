// Runs one Python program in one sandbox and says what happened.
//
// The guest side is src/guest/driver.py; both speak docs/guest-protocol.md over a private descriptor.
// Everything that comes from the guest is untrusted data. Nothing here knows MCP.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/empty_tree.h"
#include "base/unique_fd.h"
#include "io/cancellation.h"
#include "io/task.h"
#include "layers/store.h"
#include "sandbox/sandbox.h"

namespace prims::python {

inline constexpr const char* kWorkspacePath = "/sandbox/data";

enum class Stream { out, err };

/// Called with raw bytes as they arrive.
using OutputSink = std::function<void(Stream, std::string_view)>;

struct RunLimits {
  Milliseconds wall{100'000};
  sandbox::Limits sandbox;
  Bytes tmp = mib(512);          ///< /tmp, in memory
  Bytes shm = mib(256);          ///< /dev/shm, in memory
  Bytes shown_output = kib(64);  ///< per stream, head and tail, in the result
  Bytes kept_output = mib(16);   ///< per stream; a program that writes more is ended with output_limit
};

/// Standard input of a program: a text, or a descriptor that is passed on as the program reads it. The run
/// does not wait for the end of the descriptor, and leaves its flags alone: others may share it.
using Input = std::variant<std::string, UniqueFd>;

/// A host directory for one run, which becomes kWorkspacePath; files in it belong to Host::workspace_owner().
struct Workspace {
  std::string directory;
  std::shared_ptr<const EmptyTree> made;  ///< if it is new
  std::shared_ptr<void> keeper;           ///< shared by all who need the directory; may be empty
};

/// Makes a new one.
using WorkspaceSource = std::function<io::Task<Result<Workspace>>()>;

struct RunSpec {
  std::string code;                    ///< the exact bytes for the compiler
  std::optional<Input> input;          ///< standard input; none: end of file at once
  std::vector<std::string> arguments;  ///< sys.argv[1:]
  std::optional<Workspace> workspace;  ///< none: a new one
  layers::Layer layer;
  RunLimits limits;
  OutputSink on_output;  ///< may be empty
};

struct Frame {
  int line = 0;
  std::string name;
  std::string file;  ///< "main.py" for the code as sent
};

struct PythonError {
  std::string type;
  std::string message;
  std::optional<int> line;
  std::vector<Frame> frames;  ///< user frames, outermost first
  std::string traceback;      ///< user frames only
};

struct PythonValue {
  std::string text;
  std::string type;
};

/// Kept part of one stream.
struct Captured {
  std::string head;  ///< raw bytes from the start
  std::string tail;  ///< raw bytes from the end; empty when everything fits in head
  std::uint64_t total_bytes = 0;
};

/// How the interpreter of a run came about.
enum class Path {
  plain,  ///< started for the run
  fork,   ///< forked from a template when the call came
  pool,   ///< forked ahead, waiting for a call
};

std::string_view to_string(Path path);

struct RunTimings {
  Milliseconds start{0};  ///< until the guest took the code
  Milliseconds run{0};
};

struct RunResult {
  sandbox::Outcome outcome;
  Workspace workspace;  ///< in which it ran
  std::optional<PythonError> error;
  std::optional<PythonValue> value;
  Captured out;
  Captured err;
  std::optional<int> last_line;  ///< the line of the code that was running when a limit ended it
  std::string note;              ///< what was wrong with the guest's frames; empty when nothing was
  sandbox::Usage usage;
  RunTimings timings;
  Path path = Path::plain;
};

/// How much is made ready ahead of need.
struct WarmOptions {
  Bytes memory = gib(1);               ///< all templates together
  std::uint32_t pool_size = 4;         ///< guests that wait, for each environment in use
  std::uint32_t pool_total = 16;       ///< the same for all environments together
  std::uint32_t concurrent_runs = 16;  ///< runs at once
};

class Runner {
 public:
  virtual ~Runner() = default;

  /// Every run starts its own interpreter. `host` outlives the runner.
  static std::unique_ptr<Runner> create(sandbox::Host& host, layers::Interpreter interpreter,
                                        WorkspaceSource workspaces);

  /// With templates and waiting guests, where they can be had; results are the same. The executor is that of
  /// the loop that the runs are on.
  static std::unique_ptr<Runner> create_warm(io::Executor executor, sandbox::Host& host,
                                             layers::Interpreter interpreter, WorkspaceSource workspaces,
                                             WarmOptions options);

  /// An Error is a fault of ours or of the host (SetupFailed is an outcome).
  virtual io::Task<Result<RunResult>> run(RunSpec spec, std::shared_ptr<io::Cancellation> cancellation) = 0;

  /// Makes ready for runs like this ahead of the first one.
  virtual void warm_up(const layers::Layer& layer, const RunLimits& limits) = 0;

  /// Ends what was made ready. No run goes on any more, and none follows.
  virtual io::Task<Result<>> stop(Deadline deadline) = 0;
};

}  // namespace prims::python

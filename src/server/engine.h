// From a program to its report: environment, workspace, sandbox, artifacts.
//
// Everything on disk and every process is made when the first call needs it, so that starting costs nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/cancellation.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/scope.h"
#include "io/workers.h"
#include "layers/store.h"
#include "python/runner.h"
#include "sandbox/sandbox.h"
#include "server/admission.h"
#include "server/result.h"
#include "server/settings.h"
#include "server/workspaces.h"
#include "session/state.h"

namespace prims::server {

/// One program to run. The sinks may be empty.
struct Call {
  std::string caller;  ///< callers take turns when there is a line
  std::string code;
  std::vector<std::string> arguments;
  std::optional<python::Input> input;
  std::vector<std::string> requirements;
  std::optional<Milliseconds> timeout;
  python::OutputSink on_output;
  layers::Progress on_progress;
  std::optional<std::filesystem::path> copy_output_to;  ///< artifacts are copied here after the run
};

/// Whether there will be more calls, for which it is worth making things ahead: base packages, templates,
/// waiting sandboxes, workspaces.
enum class Calls { many, one };

/// The Host that an Engine finds. It is made before the loop, because what is left of its sandboxes may be
/// ended together with the loop.
using HostPlace = std::unique_ptr<sandbox::Host>;

class Engine {
 public:
  Engine(const Settings& settings, Calls calls, HostPlace& host, io::Loop& loop, io::Workers& workers);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Finds out what this host can do and which Python there is. Once; later calls return the same. An Error
  /// says what to change.
  io::Task<Result<>> start();

  /// Makes the environment of a call without requirements ready in the background. After start().
  void warm_up();

  /// Runs a program. Whatever happens is in the report.
  io::Task<Report> execute(Call call, std::shared_ptr<io::Cancellation> cancellation);

  /// Waits for what goes on in the background; packages that are being made are given up. An Error: something
  /// has not ended, and the Engine must not be destroyed.
  io::Task<Result<>> stop();

  /// Valid after start().
  sandbox::Host& host() { return *host_; }

 private:
  struct Environment;
  /// One attempt to start.
  struct Start {
    io::Event done;
    Result<> result;
  };

  io::Task<Result<>> start_once();
  io::Task<Result<>> run_in(Environment environment, Call call,
                            std::shared_ptr<io::Cancellation> cancellation, Report* report);
  io::Task<Result<Environment>> environment_for(Call* call, std::shared_ptr<io::Cancellation> cancellation,
                                                Report* report);
  io::Task<Result<Environment>> base_environment(Call* call, std::shared_ptr<io::Cancellation> cancellation,
                                                 Report* report);
  layers::Request request_for(const Call& call);
  io::Task<Result<layers::Outcome>> build(layers::Request request, layers::Progress progress,
                                          std::shared_ptr<io::Cancellation> cancellation);
  void prepare_base_in_background();
  static io::Task<> prepare_base(Engine* self);
  static io::Task<> prepare_first(Engine* self);

  const Settings& settings_;
  const Calls calls_;
  HostPlace& host_;
  io::Workers& workers_;
  io::TaskScope background_;
  Admission admission_;
  std::vector<std::string> base_modules_;

  std::shared_ptr<Start> start_;  // shared with calls that wait for it
  bool base_wanted_ = false;
  std::unique_ptr<session::State> state_;
  std::unique_ptr<layers::Store> store_;
  std::unique_ptr<Workspaces> workspaces_;
  std::unique_ptr<python::Runner> runner_;
};

}  // namespace prims::server

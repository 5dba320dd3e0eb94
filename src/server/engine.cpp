#include "server/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/random.h"
#include "io/wait.h"
#include "layers/interpreter.h"
#include "layers/script_block.h"
#include "python/module_names.h"
#include "session/artifacts.h"
#include "session/workspace.h"

namespace prims::server {
namespace {

Milliseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
}

sandbox::HostOptions host_options(const Settings& settings) {
  sandbox::HostOptions options;
  options.first_uid = settings.first_uid;
  options.uid_count = settings.uid_count;
  options.minimum = settings.min_tier;
  return options;
}

std::filesystem::path program_directory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

layers::StoreOptions store_options(const Settings& settings, const session::State& state,
                                   layers::Interpreter interpreter) {
  layers::StoreOptions options;
  options.state = state.directory();
  options.interpreter = std::move(interpreter);
  options.index_url = settings.index_url;
  options.extra_index_urls = settings.extra_index_urls;
  options.base = settings.base_packages;
  options.size_limit = settings.layer_store_size;
  options.install_timeout = settings.install_timeout;
  options.program_directory = program_directory();
  return options;
}

python::RunLimits run_limits(const Settings& settings, std::optional<Milliseconds> timeout) {
  python::RunLimits limits;
  limits.wall = timeout.value_or(settings.timeout);
  limits.sandbox.memory = settings.memory;
  limits.sandbox.processes = settings.processes;
  limits.sandbox.cpus = settings.cpus;
  limits.sandbox.cpu_time = settings.cpu_time;
  limits.sandbox.file_size = settings.workspace_size;
  limits.sandbox.open_files = settings.open_files;
  limits.sandbox.workspace = settings.workspace_size;
  limits.tmp = settings.tmp_size;
  limits.shm = settings.shm_size;
  limits.shown_output = settings.shown_output;
  limits.kept_output = settings.kept_output;
  return limits;
}

void refuse(Report& report, Status status, std::string message, std::string hint = "") {
  report.status = status;
  report.message = std::move(message);
  report.hint = std::move(hint);
}

// A failure of ours or of the host, told in the report.
void refuse(Report& report, const Error& error) {
  switch (error.kind) {
    case Kind::cancelled:
      return refuse(report, Status::cancelled, "The call was cancelled");
    case Kind::exhausted:
      return refuse(report, Status::sandbox_unavailable, error.message,
                    "Busy or out of room: try again in a few seconds.");
    case Kind::invalid_input:
      return refuse(report, Status::invalid_argument, error.message);
    default:
      return refuse(report, Status::sandbox_unavailable, error.message);
  }
}

io::Task<> sweep(const session::State* state, io::Workers* workers) {
  auto remove_leftovers = [state] { state->sweep(); };
  auto swept = co_await workers->run(std::move(remove_leftovers));
  if (!swept) log::warning("could not sweep: {}", swept.error().message);
}

python::WarmOptions warm_options(const Settings& settings) {
  return {.memory = settings.template_memory,
          .pool_size = settings.pool_size,
          .pool_total = settings.pool_total,
          .concurrent_runs = settings.concurrent_runs};
}

}  // namespace

/// What a program runs in.
struct Engine::Environment {
  layers::Layer layer;
};

Engine::Engine(const Settings& settings, Calls calls, HostPlace& host, io::Loop& loop, io::Workers& workers)
    : settings_(settings),
      calls_(calls),
      host_(host),
      workers_(workers),
      background_(loop.executor()),
      admission_(settings.concurrent_runs, settings.queue_length),
      base_modules_(python::modules_of(settings.base_packages)) {}

Engine::~Engine() = default;

io::Task<Result<>> Engine::start() {
  if (start_) {
    const std::shared_ptr<Start> attempt = start_;
    auto woken = co_await attempt->done.wait();
    PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
    co_return attempt->result;
  }
  auto attempt = std::make_shared<Start>();
  start_ = attempt;
  attempt->result = co_await start_once();
  if (!attempt->result) start_.reset();  // the next call tries again: a full disk may have room by then
  attempt->done.set();
  co_return attempt->result;
}

io::Task<Result<>> Engine::start_once() {
  if (!state_) state_ = std::make_unique<session::State>(settings_.state_dir);
  auto prepare = [this]() -> Result<layers::Interpreter> {
    if (!host_) {
      PRIMS_ASSIGN_OR_RETURN(host_, sandbox::Host::create(host_options(settings_)));
    }
    PRIMS_RETURN_ON_ERROR(state_->prepare());
    return layers::find_interpreter(layers::search_from_environment(settings_.python));
  };
  auto interpreter = co_await workers_.run(std::move(prepare));
  PRIMS_CO_RETURN_ON_ERROR(interpreter);
  auto store = layers::Store::create(store_options(settings_, *state_, *interpreter), *host_, workers_);
  PRIMS_CO_ASSIGN_OR_RETURN(store_, std::move(store));
  const Workspaces::Options workspaces{host_->workspace_owner(),
                                       calls_ == Calls::many ? settings_.pool_size : 0};
  workspaces_ = std::make_unique<Workspaces>(*state_, workspaces, workers_, background_);
  python::WorkspaceSource source = [this] { return workspaces_->take(); };
  if (settings_.templates && calls_ == Calls::many) {
    const io::Executor executor = co_await io::this_executor;
    runner_ = python::Runner::create_warm(executor, *host_, *std::move(interpreter), std::move(source),
                                          warm_options(settings_));
  } else {
    runner_ = python::Runner::create(*host_, *std::move(interpreter), std::move(source));
  }
  background_.spawn(sweep(state_.get(), &workers_), "sweep what dead processes left");
  co_return Result<>();
}

io::Task<Report> Engine::execute(Call call, std::shared_ptr<io::Cancellation> cancellation) {
  Report report;
  report.run_id = random_token();
  auto started = co_await start();
  if (!started) {
    refuse(report, started.error());
    co_return report;
  }
  report.python_version = store_->interpreter().version;
  report.isolation = sandbox::to_string(host_->tier());
  report.enforcement = host_->enforcement();

  const Clock::time_point asked = Clock::now();
  auto environment = co_await environment_for(&call, cancellation, &report);
  report.install = since(asked);
  if (!environment) {
    if (!report.status) refuse(report, environment.error());
    co_return report;
  }
  report.lock = environment->layer.lock;

  const Clock::time_point queued = Clock::now();
  auto turn = co_await admission_.take(std::move(call.caller), cancellation);
  report.queue = since(queued);
  if (!turn) {
    refuse(report, turn.error());
    if (turn.error().kind == Kind::exhausted) {
      report.retry_after = admission_.retry_after();
      report.hint = fmt::format("Try again in {} s.", (report.retry_after->count() + 999) / 1000);
    }
    co_return report;
  }
  auto done = co_await run_in(*std::move(environment), std::move(call), cancellation, &report);
  if (!done) refuse(report, done.error());
  if (report.run) {
    log::debug("run {}: {}, {}, start {} ms", report.run_id, to_string(status_of(report)),
               to_string(report.run->path), report.run->timings.start.count());
  }
  co_return report;
}

io::Task<Result<>> Engine::run_in(Environment environment, Call call,
                                  std::shared_ptr<io::Cancellation> cancellation, Report* report) {
  python::RunSpec spec;
  spec.code = std::move(call.code);
  spec.input = std::move(call.input);
  spec.arguments = std::move(call.arguments);
  spec.layer = std::move(environment.layer);
  spec.limits = run_limits(settings_, call.timeout);
  spec.on_output = std::move(call.on_output);
  const Clock::time_point begin = Clock::now();
  auto ran = co_await runner_->run(std::move(spec), cancellation);
  PRIMS_CO_ASSIGN_OR_RETURN(report->run, std::move(ran));

  const Clock::time_point collecting = Clock::now();
  const python::Workspace& workspace = report->run->workspace;
  const bool empty = workspace.made && workspace.made->untouched_since(begin);
  if (!empty) {
    auto collect = [output = session::Workspace::output_of(workspace.directory),
                    copy = std::move(call.copy_output_to),
                    limit = settings_.workspace_size]() -> Result<session::Artifacts> {
      session::Artifacts found = session::changed_files(output, {});
      if (copy && !found.files.empty()) {
        PRIMS_RETURN_ON_ERROR(session::copy_artifacts(output, found.files, *copy, limit));
      }
      return found;
    };
    auto artifacts = co_await workers_.run(std::move(collect));
    PRIMS_CO_ASSIGN_OR_RETURN(session::Artifacts found, std::move(artifacts));
    report->artifacts = std::move(found.files);
    report->artifacts_incomplete = std::move(found.incomplete);
  }
  report->run->workspace = {};
  report->collect = since(collecting);
  co_return Result<>();
}

io::Task<Result<Engine::Environment>> Engine::environment_for(Call* call,
                                                              std::shared_ptr<io::Cancellation> cancellation,
                                                              Report* report) {
  auto block = layers::read_script_block(call->code);
  PRIMS_CO_ASSIGN_OR_RETURN(const std::optional<layers::ScriptBlock> script, std::move(block));
  if (script) {
    auto fits = layers::satisfies(store_->interpreter().version, script->requires_python);
    PRIMS_CO_ASSIGN_OR_RETURN(const bool satisfied, std::move(fits));
    if (!satisfied) {
      refuse(*report, Status::dependency_error,
             fmt::format("The script asks for Python {}; here runs {}", script->requires_python,
                         store_->interpreter().version),
             "Relax requires-python, or start the server with another interpreter (setting python).");
      co_return fail(Kind::invalid_input, report->message);
    }
    call->requirements.insert(call->requirements.end(), script->dependencies.begin(),
                              script->dependencies.end());
  }
  if (call->requirements.empty()) {
    co_return co_await base_environment(call, std::move(cancellation), report);
  }
  auto built = co_await build(request_for(*call), call->on_progress, std::move(cancellation));
  PRIMS_CO_ASSIGN_OR_RETURN(layers::Outcome outcome, std::move(built));
  if (auto* layer = std::get_if<layers::Layer>(&outcome)) {
    report->hint = fmt::format("{}", fmt::join(layer->notes, " "));
    co_return Environment{std::move(*layer)};
  }
  auto& error = std::get<layers::DependencyError>(outcome);
  refuse(*report, Status::dependency_error, std::move(error.message), std::move(error.hint));
  report->log = std::move(error.log);
  co_return fail(Kind::invalid_input, report->message);
}

// The base packages come along where that costs nothing, or where the program seems to need them.
layers::Request Engine::request_for(const Call& call) {
  layers::Request with_base{call.requirements, layers::Base::with};
  if (python::mentions_any(call.code, base_modules_) || store_->find(with_base)) return with_base;
  return layers::Request{call.requirements, layers::Base::without};
}

io::Task<Result<Engine::Environment>> Engine::base_environment(Call* call,
                                                               std::shared_ptr<io::Cancellation> cancellation,
                                                               Report* report) {
  const layers::Request request{{}, layers::Base::with};
  if (auto layer = store_->find(request)) co_return Environment{*std::move(layer)};
  if (python::mentions_any(call->code, base_modules_)) {
    auto built = co_await build(request, call->on_progress, std::move(cancellation));
    PRIMS_CO_ASSIGN_OR_RETURN(layers::Outcome outcome, std::move(built));
    if (auto* layer = std::get_if<layers::Layer>(&outcome)) co_return Environment{std::move(*layer)};
    const auto& error = std::get<layers::DependencyError>(outcome);
    report->hint = fmt::format("Ran on plain Python: the base packages ({}) could not be prepared. {} {}",
                               fmt::join(settings_.base_packages, ", "), error.message, error.hint);
  } else if (calls_ == Calls::many) {
    prepare_base_in_background();
  }
  auto plain = co_await store_->plain();
  PRIMS_CO_ASSIGN_OR_RETURN(layers::Layer layer, std::move(plain));
  co_return Environment{std::move(layer)};
}

namespace {

// Where a build that several may wait for leaves its result.
struct Built {
  std::optional<Result<layers::Outcome>> value;
  io::Event done;
};

io::Task<> build_into(layers::Store* store, layers::Request request, layers::Progress progress,
                      std::shared_ptr<Built> built) {
  auto outcome = co_await store->get(std::move(request), std::move(progress));
  built->value = std::move(outcome);
  built->done.set();
}

}  // namespace

// The build itself goes on when its caller has gone: the next call finds it done.
io::Task<Result<layers::Outcome>> Engine::build(layers::Request request, layers::Progress progress,
                                                std::shared_ptr<io::Cancellation> cancellation) {
  auto built = std::make_shared<Built>();  // shared with the build
  background_.spawn(build_into(store_.get(), std::move(request), std::move(progress), built),
                    "build packages");
  cancellation->on_request([built] { built->done.set(); });
  auto woken = co_await built->done.wait();
  cancellation->on_request({});
  PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
  if (!built->value) co_return fail(Kind::cancelled, "the call was cancelled");
  co_return std::move(*built->value);
}

void Engine::prepare_base_in_background() {
  if (base_wanted_ || settings_.base_packages.empty()) return;
  base_wanted_ = true;
  background_.spawn(prepare_base(this), "prepare base packages");
}

io::Task<> Engine::prepare_base(Engine* self) {
  layers::Request request{{}, layers::Base::with};
  layers::Progress nobody;
  auto built = co_await self->store_->get(std::move(request), std::move(nobody));
  if (!built) co_return;
  const auto* layer = std::get_if<layers::Layer>(&*built);
  if (layer != nullptr) self->runner_->warm_up(*layer, run_limits(self->settings_, std::nullopt));
}

void Engine::warm_up() {
  background_.spawn(prepare_first(this), "make the first environment ready");
}

io::Task<> Engine::prepare_first(Engine* self) {
  auto layer = self->store_->find(layers::Request{{}, layers::Base::with});
  if (!layer) {
    auto plain = co_await self->store_->plain();
    if (!plain) co_return log::debug("no plain environment: {}", plain.error().message);
    layer = *std::move(plain);
  }
  self->runner_->warm_up(*layer, run_limits(self->settings_, std::nullopt));
}

io::Task<Result<>> Engine::stop() {
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  if (runner_) {
    auto stopped = co_await runner_->stop(deadline);
    PRIMS_CO_RETURN_ON_ERROR(std::move(stopped));
  }
  if (store_) {
    auto stopped = co_await store_->stop(deadline);
    PRIMS_CO_RETURN_ON_ERROR(std::move(stopped));
  }
  co_return co_await background_.join(deadline);
}

}  // namespace prims::server

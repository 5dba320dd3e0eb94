#include "server/app.h"

#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"
#include "io/workers.h"
#include "server/engine.h"

namespace prims::server {
namespace {

/// What a signal asked for while one program runs.
struct Interruption {
  int signal = 0;
};

io::Task<> cancel_on_signal(io::Signals* signals, std::shared_ptr<io::Cancellation> cancellation,
                            Interruption* interruption) {
  auto number = co_await signals->next();
  if (!number) co_return;
  interruption->signal = *number;
  cancellation->request();
}

io::Task<Report> run_call(Engine* engine, Call call, std::shared_ptr<io::Cancellation> cancellation,
                          Interruption* interruption) {
  const io::Executor executor = co_await io::this_executor;
  io::Signals signals(executor, {SIGINT, SIGTERM});
  io::TaskScope scope(executor);
  scope.spawn(cancel_on_signal(&signals, cancellation, interruption), "wait for a signal");
  Report report = co_await engine->execute(std::move(call), cancellation);
  scope.cancel();
  auto joined = co_await scope.join();
  auto stopped = co_await engine->stop();
  leave_unless(stopped, exit_status_of(report));
  co_return report;
}

}  // namespace

void leave_unless(const Result<>& stopped, int status) {
  if (stopped) return;
  log::warning("background work did not end: {}", stopped.error().message);
  ::_exit(status);
}

RunOutcome run_once(const Settings& settings, RunRequest request) {
  HostPlace host;
  io::Loop loop;
  io::Workers workers;
  Engine engine(settings, Calls::one, host, loop, workers);
  Call call;
  call.code = std::move(request.code);
  call.arguments = std::move(request.arguments);
  call.input = std::move(request.input);
  call.requirements = std::move(request.requirements);
  call.timeout = request.timeout;
  call.on_output = std::move(request.on_output);
  call.on_progress = std::move(request.on_progress);
  call.copy_output_to = std::move(request.output_directory);
  Interruption interruption;
  const Report report =
      loop.run_until_done(run_call(&engine, std::move(call), request.cancellation, &interruption));
  RunOutcome outcome;
  outcome.result = to_json(report);
  outcome.exit_status =
      interruption.signal == 0 ? exit_status_of(report) : exit_status::kSignalBase + interruption.signal;
  return outcome;
}

}  // namespace prims::server

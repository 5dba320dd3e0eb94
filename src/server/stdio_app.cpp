#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"
#include "io/workers.h"
#include "server/app.h"
#include "server/engine.h"
#include "server/run_code.h"
#include "transport/stdio.h"

namespace prims::server {
namespace {

// The first signal is like the end of the input; a second one does not wait for running calls.
io::Task<> stop_on_signal(io::Signals* signals, transport::StdioServer* server) {
  auto first = co_await signals->next();
  if (!first) co_return;
  server->stop();
  auto second = co_await signals->next();
  if (second) ::_exit(exit_status::kSignalBase + *second);
}

io::Task<> serve_until_end(transport::StdioServer* server, Engine* engine) {
  const io::Executor executor = co_await io::this_executor;
  io::Signals signals(executor, {SIGTERM, SIGINT});
  io::TaskScope scope(executor);
  scope.spawn(stop_on_signal(&signals, server), "wait for a signal");
  co_await server->run();
  auto stopped = co_await engine->stop();
  leave_unless(stopped, exit_status::kOk);
  scope.cancel();
  auto joined = co_await scope.join();
}

}  // namespace

int stdio(const Settings& settings) {
  auto streams = transport::claim_standard_streams();
  if (!streams) {
    log::error("{}", streams.error().message);
    return exit_status::kError;
  }
  HostPlace host;
  io::Loop loop;
  io::Workers workers;
  Engine engine(settings, Calls::many, host, loop, workers);
  Tools tools(settings, engine);
  transport::StdioOptions options;
  options.line_limit = settings.http_body_size;
  options.calls.all = 2 * (settings.concurrent_runs +
                           settings.queue_length);  // so that the queue itself says when it is full
  transport::StdioServer server(loop.executor(), tools, server_info(settings), *std::move(streams), options);
  loop.run_until_done(serve_until_end(&server, &engine));
  return exit_status::kOk;
}

}  // namespace prims::server

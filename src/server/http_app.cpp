#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"
#include "io/workers.h"
#include "server/app.h"
#include "server/engine.h"
#include "server/run_code.h"
#include "transport/streamable_http.h"

namespace prims::server {
namespace {

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool is_numeric_address(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

Result<std::vector<http::ListenAddress>> listen_addresses(const Settings& settings) {
  using Need = http::ListenAddress::Need;
  if (settings.host == "localhost") {
    return std::vector<http::ListenAddress>{{"127.0.0.1", settings.port, Need::required},
                                            {"::1", settings.port, Need::if_available}};
  }
  if (!is_numeric_address(settings.host)) {
    return fail(Kind::invalid_input,
                fmt::format("host must be localhost or a numeric address such as 127.0.0.1, not '{}'",
                            settings.host));
  }
  if (!is_loopback(settings.host) && !settings.allow_unauthenticated) {
    return fail(Kind::denied, fmt::format("refusing to serve on {}: everyone who reaches it could run "
                                          "programs here, because nobody has to prove "
                                          "who they are. Listen on localhost, or pass "
                                          "--allow-unauthenticated where the network itself is guarded",
                                          settings.host));
  }
  return std::vector<http::ListenAddress>{{settings.host, settings.port, Need::required}};
}

http::ServerLimits http_limits(const Settings& settings) {
  http::ServerLimits limits;
  limits.body = settings.http_body_size;
  limits.connections = settings.http_connections;
  limits.connections_per_peer = settings.http_connections;  // behind a proxy everybody is one peer
  limits.idle_time = settings.http_idle_timeout;
  return limits;
}

transport::StreamableHttpOptions mcp_options(const Settings& settings) {
  transport::StreamableHttpOptions options;
  options.origins.hosts = settings.allowed_hosts;
  if (!is_loopback(settings.host)) options.origins.hosts.push_back(settings.host);
  options.origins.origins = settings.allowed_origins;
  options.sessions.most = settings.http_sessions;
  options.sessions.idle = settings.http_session_idle;
  options.calls.all = 2 * (settings.concurrent_runs +
                           settings.queue_length);  // so that the queue itself says when it is full
  return options;
}

/// Routes requests: MCP, health, and nothing else.
class Routes {
 public:
  explicit Routes(transport::StreamableHttp& mcp) : mcp_(mcp) {}

  io::Task<> handle(http::Request request, http::Responder responder) {
    if (transport::StreamableHttp::serves(request.path())) {
      return mcp_.handle(std::move(request), std::move(responder), mcp::Principal{});
    }
    return answer(std::move(request), std::move(responder));
  }

 private:
  static io::Task<> answer(http::Request request, http::Responder responder) {
    http::Response response;
    response.headers.add("Content-Type", "text/plain; charset=utf-8");
    if (request.path() != "/healthz") {
      response.status = 404;
      response.body = "Not found. MCP is served at /mcp.\n";
    } else if (request.method != "GET" && request.method != "HEAD") {
      response.status = 405;
      response.headers.add("Allow", "GET, HEAD");
    } else {
      response.body = "ok\n";
    }
    auto sent = co_await responder.send(std::move(response));
  }

  transport::StreamableHttp& mcp_;
};

io::Task<> stop_hard_on_signal(io::Signals* signals) {
  auto number = co_await signals->next();
  if (number) ::_exit(exit_status::kSignalBase + *number);
}

io::Task<> drain(http::Server* server, transport::StreamableHttp* mcp, Engine* engine, io::Signals* signals,
                 Milliseconds limit) {
  const io::Executor executor = co_await io::this_executor;
  io::TaskScope scope(executor);
  scope.spawn(stop_hard_on_signal(signals), "wait for a second signal");
  const Deadline deadline = Deadline::after(limit);
  mcp->close_streams();
  co_await server->drain(deadline);
  auto ended = co_await mcp->end_calls(Deadline::after(std::chrono::seconds(5)));
  if (!ended) log::warning("calls did not end: {}", ended.error().message);
  auto stopped = co_await engine->stop();
  leave_unless(stopped, exit_status::kOk);
  scope.cancel();
  auto joined = co_await scope.join();
}

int refuse(const Error& error, int status) {
  log::error("{}", error.message);
  return status;
}

void announce(const std::vector<std::string>& urls) {
  std::vector<std::string> endpoints;
  for (const std::string& url : urls) endpoints.push_back(url + "/mcp");
  fmt::print("PRIMS serves MCP at {}\n", fmt::join(endpoints, " and "));
  std::fflush(stdout);
}

io::Task<int> serve_until_signal(const Settings* settings, Engine* engine, transport::StreamableHttp* mcp) {
  auto addresses = listen_addresses(*settings);
  if (!addresses) co_return refuse(addresses.error(), exit_status::kUsage);
  auto started = co_await engine->start();
  if (!started) co_return refuse(started.error(), exit_status::kSandboxFailed);

  const io::Executor executor = co_await io::this_executor;
  io::Signals signals(executor, {SIGTERM, SIGINT});
  auto routes = std::make_shared<Routes>(*mcp);  // shared with every handler
  http::Handler handler = [routes](http::Request request, http::Responder responder) {
    return routes->handle(std::move(request), std::move(responder));
  };
  auto listening =
      http::Server::listen(executor, *std::move(addresses), http_limits(*settings), std::move(handler));
  if (!listening) {
    log::error("{}; choose another port with --port, or 0 for any free one", listening.error().message);
    co_return exit_status::kError;
  }
  announce((*listening)->urls());
  engine->warm_up();

  auto number = co_await signals.next();
  if (!number) co_return refuse(number.error(), exit_status::kError);
  log::info("stopping: running calls have {} s to end, a second signal ends them at once",
            std::chrono::duration_cast<std::chrono::seconds>(settings->drain_timeout).count());
  co_await drain(listening->get(), mcp, engine, &signals, settings->drain_timeout);
  co_return exit_status::kOk;
}

}  // namespace

int serve(const Settings& settings) {
  HostPlace host;
  io::Loop loop;
  io::Workers workers;
  Engine engine(settings, Calls::many, host, loop, workers);
  Tools tools(settings, engine);
  transport::StreamableHttp mcp(loop.executor(), tools, server_info(settings), mcp_options(settings));
  return loop.run_until_done(serve_until_signal(&settings, &engine, &mcp));
}

}  // namespace prims::server

#include "layers/workshop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "io/pipe.h"
#include "io/scope.h"
#include "io/stream.h"
#include "layers/file_hosts.h"
#include "sandbox/root.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr std::uint16_t kBrokerPort = 8629;
constexpr Bytes kMostOutput = mib(4);

/// Generous: compilers run here, and limits of runs are another matter.
sandbox::Limits job_limits() {
  return sandbox::Limits{.memory = gib(4),
                         .processes = 512,
                         .cpus = 0,
                         .cpu_time = Milliseconds{0},
                         .file_size = gib(8),
                         .open_files = 4096,
                         .workspace = gib(32)};
}

/// The standard root with the environment among the writable things below /mnt: Landlock grants writing by
/// parents.
sandbox::Root job_root() {
  auto root = sandbox::minimal_root(
      "build", {.tmp = gib(2), .shared_memory = mib(256), .home = mib(256), .run = mib(64)});
  std::erase(root.directories, kEnvironmentPath);
  root.writable_parents = {"/mnt"};
  root.symlinks.push_back({.path = kEnvironmentPath, .target = kEnvironmentMount});
  return root;
}

/// Reads to the end and keeps what fits: the head and, of what is too long, the last half.
io::Task<> collect(io::Stream stream, std::shared_ptr<std::string> into) {
  std::array<char, 16384> chunk{};
  while (true) {
    auto got = co_await stream.read_some(chunk, Deadline::never());
    if (!got || *got == 0) co_return;
    into->append(chunk.data(), *got);
    if (into->size() > kMostOutput.count)
      into->erase(kMostOutput.count / 2, into->size() - kMostOutput.count);
  }
}

void learn_from(egress::Broker& broker, JobResult& result, const fs::path& file_hosts) {
  broker.stop();
  auto report = broker.report();
  result.refusals = std::move(report.refusals);
  if (report.upstream_answers == 0) result.network_error = std::move(report.last_upstream_error);
  if (report.file_hosts == read_file_hosts(file_hosts)) return;
  const auto kept = write_file_hosts(file_hosts, report.file_hosts);
  if (!kept) log::warning("what an index names is not remembered: {}", kept.error().message);
}

}  // namespace

bool JobResult::succeeded() const {
  const auto* exited = std::get_if<sandbox::Exited>(&outcome);
  return exited != nullptr && exited->code == 0;
}

std::string index_url_inside(std::size_t number) {
  return fmt::format("http://127.0.0.1:{}/index/{}/", kBrokerPort, number);
}

Workshop::Workshop(sandbox::Host& host, Interpreter interpreter)
    : host_(host), interpreter_(std::move(interpreter)) {}

sandbox::PrepareSpec Workshop::specification(const Job& job) const {
  sandbox::PrepareSpec spec;
  spec.root = job_root();
  auto& root = spec.root;
  for (const auto& path : interpreter_.directories) root.binds.push_back({.source = path, .target = path});
  if (!uv_.empty()) root.binds.push_back({.source = uv_.string(), .target = kUvInside});
  root.files.insert(root.files.end(), job.files.begin(), job.files.end());
  for (const auto& attachment : job.attachments) root.directories.push_back(attachment.target);
  spec.limits = job_limits();
  if (!job.indexes.empty()) {
    spec.network = sandbox::Network::loopback_broker;
    spec.broker_port = kBrokerPort;
  }
  spec.hostname = "build";
  return spec;
}

Result<std::unique_ptr<egress::Broker>> Workshop::open_way_out(sandbox::Sandbox& sandbox,
                                                               const Job& job) const {
  if (job.indexes.empty()) return nullptr;
  egress::BrokerOptions options;
  for (const auto& index : job.indexes) {
    PRIMS_ASSIGN_OR_RETURN(auto url, http::parse_url(index));
    if (!url.target.ends_with('/')) url.target += '/';
    options.indexes.push_back(std::move(url));
  }
  options.file_hosts = read_file_hosts(job.file_hosts);
  return egress::Broker::start(sandbox.take_broker_socket(), std::move(options));
}

io::Task<Result<JobResult>> Workshop::run(Job job) {
  auto prepared = co_await host_.prepare(specification(job));
  PRIMS_CO_ASSIGN_OR_RETURN(auto sandbox, std::move(prepared));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto broker, open_way_out(*sandbox, job));
  const auto file_hosts = job.file_hosts;
  PRIMS_CO_ASSIGN_OR_RETURN(auto out, io::make_pipe());
  PRIMS_CO_ASSIGN_OR_RETURN(auto err, io::make_pipe());

  auto attached = co_await sandbox->attach(std::move(job.attachments));
  PRIMS_CO_RETURN_ON_ERROR(std::move(attached));
  sandbox::StartSpec start{.argv = std::move(job.argv),
                           .environment = {"PATH=/usr/bin:/bin", fmt::format("HOME={}", sandbox::kHome),
                                           "TMPDIR=/tmp", "LANG=C.UTF-8"},
                           .directory = "/tmp",
                           .standard_output = std::move(out.write),
                           .standard_error = std::move(err.write)};
  std::ranges::move(job.environment, std::back_inserter(start.environment));
  auto started = co_await sandbox->start(std::move(start));
  PRIMS_CO_RETURN_ON_ERROR(std::move(started));

  const auto executor = co_await io::this_executor;
  io::TaskScope readers(executor);
  auto out_text = std::make_shared<std::string>();
  auto err_text = std::make_shared<std::string>();
  readers.spawn(collect(io::Stream(std::move(out.read)), out_text), "output of an installer");
  readers.spawn(collect(io::Stream(std::move(err.read)), err_text), "errors of an installer");
  const bool ended = co_await sandbox->ended_by(job.deadline);
  if (!ended) sandbox->kill(sandbox::TimedOut{});
  auto outcome = co_await sandbox->finish();
  // Every process is gone, so both pipes are at their ends.
  auto joined = co_await readers.join();
  PRIMS_CO_RETURN_ON_ERROR(std::move(joined));
  JobResult result{.outcome = outcome, .out = std::move(*out_text), .err = std::move(*err_text)};
  if (broker) learn_from(*broker, result, file_hosts);
  co_return result;
}

}  // namespace prims::layers

#include "sandbox/test_support.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/pipe.h"
#include "io/stream.h"

namespace prims::sandbox::testing {
namespace {

constexpr std::size_t kMostOutput = 1 << 20;

/// Everything up to the end of the pipe.
io::Task<> collect(io::Stream& stream, std::string& into) {
  std::string buffer(4096, '\0');
  while (into.size() < kMostOutput) {
    auto got = co_await stream.read_some(buffer, Deadline::after(Milliseconds(30'000)));
    if (!got || *got == 0) co_return;
    into.append(buffer, 0, *got);
  }
}

}  // namespace

std::unique_ptr<Host> SandboxTest::host_;

void SandboxTest::SetUpTestSuite() {
  auto host = Host::create({});
  ASSERT_TRUE(host) << host.error().message;
  host_ = *std::move(host);
}

void SandboxTest::TearDownTestSuite() {
  host_.reset();
}

int Ran::exit_code() const {
  const auto* exited = std::get_if<Exited>(&outcome);
  return exited == nullptr ? -1 : exited->code;
}

Program python(std::string code) {
  Program program;
  program.argv = {"/usr/bin/python3", "-I", "-c", std::move(code)};
  return program;
}

Program shell(std::string script) {
  Program program;
  program.argv = {"/bin/sh", "-c", std::move(script)};
  return program;
}

io::Task<Result<Ran>> SandboxTest::run_task(Program program) {
  auto made = co_await host_->prepare(std::move(program.prepare));
  PRIMS_CO_ASSIGN_OR_RETURN(auto sandbox, std::move(made));
  auto attached = co_await sandbox->attach(std::move(program.attachments));
  PRIMS_CO_RETURN_ON_ERROR(std::move(attached));
  io::Pipe pipe = io::make_pipe().value();
  StartSpec start;
  start.argv = std::move(program.argv);
  start.environment = std::move(program.environment);
  start.directory = std::move(program.directory);
  start.standard_error = UniqueFd(::fcntl(pipe.write.get(), F_DUPFD_CLOEXEC, 0));
  start.standard_output = std::move(pipe.write);
  start.extra = std::move(program.extra);
  auto started = co_await sandbox->start(std::move(start));
  PRIMS_CO_RETURN_ON_ERROR(std::move(started));
  Ran ran;
  io::Stream output(std::move(pipe.read));
  const bool ended = co_await sandbox->ended_by(Deadline::after(program.limit));
  if (!ended) sandbox->kill(TimedOut{program.limit});
  ran.outcome = co_await sandbox->finish();
  co_await collect(output, ran.out);
  ran.usage = sandbox->usage();
  co_return ran;
}

Ran SandboxTest::run(Program program) {
  auto ran = loop_.run_until_done(run_task(std::move(program)));
  if (ran) return *std::move(ran);
  ADD_FAILURE() << ran.error().message;
  return {};
}

TempDir::TempDir(uid_t owner) {
  std::string pattern = std::filesystem::temp_directory_path() / "prims-test-XXXXXX";
  path_ = ::mkdtemp(pattern.data());
  if (::geteuid() == 0 && ::chown(path_.c_str(), owner, owner) != 0) std::abort();
}

TempDir::~TempDir() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TempDir::write(const std::string& name, const std::string& content) const {
  std::string path = fmt::format("{}/{}", path_, name);
  std::ofstream(path) << content;
  return path;
}

std::string TempDir::read(const std::string& name) const {
  std::ifstream file(fmt::format("{}/{}", path_, name));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace prims::sandbox::testing

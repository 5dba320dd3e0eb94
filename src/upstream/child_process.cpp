#include "upstream/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "io/wait.h"

namespace prims::upstream {
namespace {

constexpr std::array<const char*, 6> kPassedOn = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"};

struct Pipe {
  UniqueFd read;
  UniqueFd write;

  static Result<Pipe> make() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) return fail_errno("pipe2");
    return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
  }
};

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> out;
  for (const char* name : kPassedOn) {
    const char* value =
        std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
    const auto given = [name](const auto& pair) { return pair.first == name; };
    if (value != nullptr && std::ranges::none_of(command.environment, given))
      out.push_back(fmt::format("{}={}", name, value));
  }
  for (const auto& [name, value] : command.environment) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// posix_spawn's two argument objects, freed together.
struct SpawnPlan {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};

  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  /// A group of its own, no blocked signals, and SIGPIPE as programs expect it: the loop ignores it.
  void separate() {
    sigset_t none;
    sigset_t defaults;
    ::sigemptyset(&none);
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
};

}  // namespace

ChildProcess::ChildProcess(int pid, UniqueFd pidfd, UniqueFd in, UniqueFd out, UniqueFd errors)
    : pid_(pid),
      pidfd_(std::move(pidfd)),
      in_(std::move(in)),
      out_(std::move(out)),
      errors_(std::move(errors)) {}

ChildProcess::~ChildProcess() {
  if (pid_ == 0) return;
  signal_group(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const Command& command) {
  if (command.argv.empty()) return fail(Kind::invalid_input, "the command of a server is empty");
  PRIMS_ASSIGN_OR_RETURN(Pipe in, Pipe::make());
  PRIMS_ASSIGN_OR_RETURN(Pipe out, Pipe::make());
  PRIMS_ASSIGN_OR_RETURN(Pipe errors, Pipe::make());
  SpawnPlan plan;
  plan.separate();
  ::posix_spawn_file_actions_adddup2(&plan.actions, in.read.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, out.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, errors.write.get(), STDERR_FILENO);
  if (!command.directory.empty())
    ::posix_spawn_file_actions_addchdir_np(&plan.actions, command.directory.c_str());
  std::vector<std::string> arguments = command.argv;
  std::vector<std::string> environment = environment_of(command);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &plan.actions, &plan.attributes, argv.data(), envp.data());
  if (error != 0) return fail_errno(fmt::format("start {}", command.argv[0]), error);
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, std::move(pidfd), std::move(in.write),
                                                        std::move(out.read), std::move(errors.read)));
}

void ChildProcess::signal_group(int number) const {
  ::kill(-pid_, number);
}

io::Task<> ChildProcess::stop(Milliseconds grace) {
  in_.close();
  for (const int number : {SIGTERM, SIGKILL, 0}) {
    if (pid_ == 0) co_return;
    auto ended = co_await io::wait_process(pidfd_.get(), Deadline::after(grace));
    if (ended) break;
    if (number != 0) signal_group(number);
  }
  // Whatever the program left in its group goes with it.
  signal_group(SIGKILL);
  pid_ = 0;
}

}  // namespace prims::upstream

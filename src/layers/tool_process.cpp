#include "layers/tool_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/unique_fd.h"
#include "io/pipe.h"
#include "io/scope.h"
#include "io/stream.h"
#include "io/wait.h"

namespace prims::layers {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const auto& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

/// A program that was started. What is left of it is killed and reaped when this object goes.
class Started {
 public:
  explicit Started(pid_t pid) : pid_(pid) {}
  Started(Started&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Started& operator=(Started&&) = delete;
  ~Started() { std::ignore = end(); }

  Result<UniqueFd> pidfd() const {
    UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    if (!fd) return fail_errno("pidfd_open");
    return fd;
  }

  /// Kills the group. While its leader is not reaped, the group's number belongs to nobody else.
  void kill() const {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
  }

  /// Ends what still runs; the exit status, or 128 + signal.
  int end() {
    if (pid_ < 0) return 0;
    kill();
    return reap();
  }

  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

struct Running {
  Started program;
  UniqueFd out;
  UniqueFd err;
};

Result<Running> start(const ToolCommand& command) {
  PRIMS_ASSIGN_OR_RETURN(auto out, io::make_pipe());
  PRIMS_ASSIGN_OR_RETURN(auto err, io::make_pipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // SIGPIPE is ignored here; a program expects the default.
  sigset_t to_default;
  sigemptyset(&to_default);
  sigaddset(&to_default, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &to_default);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  auto argv = pointers(command.argv);
  auto environment = pointers(command.environment);
  pid_t child = -1;
  const int code = ::posix_spawn(&child, command.argv.front().c_str(), &actions, &attributes, argv.data(),
                                 environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) return fail_errno(command.argv.front(), code);
  return Running{Started(child), std::move(out.read), std::move(err.read)};
}

Error too_late(const ToolCommand& command) {
  return {Kind::timed_out, command.argv.front() + " did not end in time"};
}

void keep(std::string& into, std::string_view more, Bytes limit) {
  const auto room = limit.count > into.size() ? limit.count - into.size() : 0;
  into.append(more.substr(0, room));
}

int milliseconds_until(Deadline deadline) {
  if (deadline.at == Clock::time_point::max()) return -1;
  const auto left = std::chrono::duration_cast<Milliseconds>(deadline.at - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 3'600'000));
}

/// Reads what is there; false at the end of the stream.
bool drain(int fd, std::string& into, Bytes limit) {
  std::array<char, 16384> chunk{};
  const auto got = ::read(fd, chunk.data(), chunk.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  keep(into, std::string_view(chunk.data(), static_cast<std::size_t>(got)), limit);
  return got > 0;
}

/// Both streams to their ends. False: the deadline came first.
bool collect(Running& running, const ToolCommand& command, Deadline deadline, ToolOutput& output) {
  auto& out = running.out;
  auto& err = running.err;
  while (out || err) {
    std::array<pollfd, 2> waits{pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
    const int ready = ::poll(waits.data(), waits.size(), milliseconds_until(deadline));
    if (ready == 0 || deadline.passed()) return false;
    if (ready < 0) continue;
    if (waits[0].revents != 0 && !drain(out.get(), output.out, command.output_limit)) out.reset();
    if (waits[1].revents != 0 && !drain(err.get(), output.err, command.output_limit)) err.reset();
  }
  return true;
}

io::Task<> read_all(io::Stream stream, std::shared_ptr<std::string> into, Bytes limit) {
  std::array<char, 16384> chunk{};
  while (true) {
    auto got = co_await stream.read_some(chunk, Deadline::never());
    if (!got || *got == 0) co_return;
    keep(*into, std::string_view(chunk.data(), *got), limit);
  }
}

}  // namespace

io::Task<Result<ToolOutput>> run_tool(ToolCommand command, Deadline deadline) {
  auto starting = start(command);
  PRIMS_CO_ASSIGN_OR_RETURN(auto running, std::move(starting));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto pidfd, running.program.pidfd());
  const auto executor = co_await io::this_executor;
  io::TaskScope readers(executor);
  auto out = std::make_shared<std::string>();  // shared with its reader, as the next is
  auto err = std::make_shared<std::string>();
  readers.spawn(read_all(io::Stream(std::move(running.out)), out, command.output_limit), "output of a tool");
  readers.spawn(read_all(io::Stream(std::move(running.err)), err, command.output_limit), "errors of a tool");
  auto ended = co_await io::wait_readable(pidfd.get(), deadline);
  if (!ended && ended.error().kind == Kind::timed_out) co_return std::unexpected(too_late(command));
  PRIMS_CO_RETURN_ON_ERROR(std::move(ended));
  const int status = running.program.end();
  auto joined = co_await readers.join(deadline);
  PRIMS_CO_RETURN_ON_ERROR(std::move(joined));
  co_return ToolOutput{.status = status, .out = std::move(*out), .err = std::move(*err)};
}

Result<ToolOutput> run_tool_blocking(const ToolCommand& command, Deadline deadline) {
  PRIMS_ASSIGN_OR_RETURN(auto running, start(command));
  ToolOutput output;
  if (!collect(running, command, deadline, output)) return std::unexpected(too_late(command));
  output.status = running.program.reap();
  return output;
}

}  // namespace prims::layers

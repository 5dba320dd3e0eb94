#include "layers/tool_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/unique_fd.h"

namespace prims::layers {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const auto& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

Result<pid_t> spawn(const ToolCommand& command, const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that what it started ends with it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  auto argv = pointers(command.argv);
  auto environment = pointers(command.environment);
  pid_t child = -1;
  const int code = ::posix_spawn(&child, command.argv.front().c_str(), &actions, &attributes, argv.data(),
                                 environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) return fail_errno(command.argv.front(), code);
  return child;
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
  const auto room = limit.count > into.size() ? limit.count - into.size() : 0;
  into.append(chunk.data(), std::min<std::size_t>(static_cast<std::size_t>(got), room));
  return got > 0;
}

/// Both streams to their ends. False: the deadline came first.
bool collect(Pipe& out, Pipe& err, const ToolCommand& command, Deadline deadline, ToolOutput& output) {
  while (out.read || err.read) {
    std::array<pollfd, 2> waits{pollfd{out.read.get(), POLLIN, 0}, pollfd{err.read.get(), POLLIN, 0}};
    const int ready = ::poll(waits.data(), waits.size(), milliseconds_until(deadline));
    if (ready == 0 || deadline.passed()) return false;
    if (ready < 0) continue;
    if (waits[0].revents != 0 && !drain(out.read.get(), output.out, command.output_limit)) out.read.reset();
    if (waits[1].revents != 0 && !drain(err.read.get(), output.err, command.output_limit)) err.read.reset();
  }
  return true;
}

}  // namespace

Result<ToolOutput> run_tool(const ToolCommand& command, Deadline deadline) {
  PRIMS_ASSIGN_OR_RETURN(auto out, make_pipe());
  PRIMS_ASSIGN_OR_RETURN(auto err, make_pipe());
  PRIMS_ASSIGN_OR_RETURN(const pid_t child, spawn(command, out, err));
  out.write.reset();
  err.write.reset();
  ToolOutput output;
  const bool in_time = collect(out, err, command, deadline, output);
  if (!in_time) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) return fail(Kind::timed_out, command.argv.front() + " did not end in time");
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

}  // namespace prims::layers

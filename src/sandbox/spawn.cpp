#include "sandbox/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <csignal>
#include <string>
#include <vector>

#include "launcher/kernel.h"
#include "launcher/wire.h"

namespace prims::sandbox {
namespace {

namespace wire = launcher::wire;

#ifndef MFD_EXEC
constexpr unsigned kMemfdExec = 0x10;  // Linux 6.3
#else
constexpr unsigned kMemfdExec = MFD_EXEC;
#endif

/// Out of the way of the numbers that the launcher expects.
constexpr int kFirstFree = 64;

Result<UniqueFd> moved_up(int fd) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree));
  if (!copy) return fail_errno("fcntl F_DUPFD_CLOEXEC");
  return copy;
}

/// posix_spawn's two parameter objects.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    for (int fd = 0; fd < 3; ++fd) posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDWR, 0);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  void give(const UniqueFd& from, int number) {
    posix_spawn_file_actions_adddup2(&actions_, from.get(), number);
  }

  Result<pid_t> run(const std::string& path) {
    std::string name = wire::kLauncherName;
    char* arguments[] = {name.data(), nullptr};
    char* environment[] = {nullptr};
    pid_t pid = -1;
    const int error = posix_spawn(&pid, path.c_str(), &actions_, &attributes_, arguments, environment);
    if (error != 0) return fail_errno("start the launcher", error);
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Result<> fill(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t put = ::write(file, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno("write memory file");
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace

Result<SocketPair> make_sockets() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno("socketpair");
  SocketPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  PRIMS_ASSIGN_OR_RETURN(pair.theirs, moved_up(pair.theirs.get()));
  return pair;
}

Result<UniqueFd> make_memory_file(const char* name, std::string_view content, MemoryFileUse use) {
  const bool program = use == MemoryFileUse::program;
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd file(::memfd_create(name, kFlags | (program ? kMemfdExec : 0)));
  if (!file && errno == EINVAL) file = UniqueFd(::memfd_create(name, kFlags));
  if (!file) return fail_errno("memfd_create");
  PRIMS_RETURN_ON_ERROR(fill(file.get(), content));
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fchmod(file.get(), program ? 0555 : 0444) != 0) return fail_errno("chmod memory file");
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return fail_errno("seal memory file");
  return moved_up(file.get());
}

Result<Launched> spawn_launcher(int program, std::string_view spec, std::span<const int> entries) {
  PRIMS_ASSIGN_OR_RETURN(UniqueFd spec_file, make_memory_file("prims-spec", spec, MemoryFileUse::data));
  PRIMS_ASSIGN_OR_RETURN(SocketPair control, make_sockets());
  PRIMS_ASSIGN_OR_RETURN(SocketPair init, make_sockets());
  SpawnPlan plan;
  plan.give(control.theirs, wire::kControlFd);
  plan.give(init.theirs, wire::kInitFd);
  plan.give(spec_file, wire::kSpecFd);
  std::vector<UniqueFd> moved;
  for (const int entry : entries) {
    PRIMS_ASSIGN_OR_RETURN(UniqueFd copy, moved_up(entry));
    plan.give(copy, wire::kFirstEntryFd + static_cast<int>(moved.size()));
    moved.push_back(std::move(copy));
  }
  Launched launched;
  PRIMS_ASSIGN_OR_RETURN(launched.pid, plan.run(fmt::format("/proc/self/fd/{}", program)));
  launched.pidfd = UniqueFd(launcher::kernel::pidfd_open(launched.pid));
  launched.spec = std::move(spec_file);
  launched.control = std::move(control.ours);
  launched.init = std::move(init.ours);
  if (!launched.pidfd) return fail_errno("pidfd_open");  // the launcher sees its sockets close, and ends
  return launched;
}

}  // namespace prims::sandbox

#include "launcher/init.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/census.h"
#include "launcher/channel.h"
#include "launcher/lock_down.h"
#include "launcher/newborn.h"
#include "launcher/program.h"
#include "launcher/spec_file.h"
#include "launcher/usage.h"

namespace prims::launcher {
namespace {

struct Init {
  int children = -1;  ///< signalfd for SIGCHLD
  pid_t program = 0;
  char buffer[wire::kMaxMessage] = {};
};

/// Nobody may look into this process or outlive its launcher, and its standard descriptors are the sandbox's
/// own.
Failure harden() {
  LAUNCHER_TRY(check("not dumpable", prctl(PR_SET_DUMPABLE, 0)));
  LAUNCHER_TRY(check("name", prctl(PR_SET_NAME, "init")));
  LAUNCHER_TRY(die_with_parent());
  LAUNCHER_TRY(take_null_descriptors());
  return check("close on exec", fcntl(wire::kInitFd, F_SETFD, FD_CLOEXEC));
}

/// A program that joins is none of its descendants and gets its signals all the same.
Failure get_ready(Init& self) {
  wire::Spec spec;
  LAUNCHER_TRY(harden());
  LAUNCHER_TRY(watch_children(self.children));
  LAUNCHER_TRY(map_spec(wire::kSpecFd, spec));
  close(wire::kSpecFd);
  LAUNCHER_TRY(restrict_files(spec, spec.has(wire::kStage) ? SignalScope::open : SignalScope::own_domain));
  LAUNCHER_TRY(filter_system_calls(spec.filter));
  wire::Notice notice;
  notice.kind = wire::NoticeKind::ready;
  return send_notice(wire::kInitFd, notice);
}

constexpr std::uint32_t kInitAndProgram = 2;

/// Nothing outlives the program. What it left behind is counted while it is still there (a burst of processes
/// may be shorter than the pause of whoever samples from outside), killed and reaped. Everything in this pid
/// namespace is a descendant or has been adopted, so no children left means that nobody is.
std::uint32_t clear_out() {
  pid_t reaped = 0;
  while ((reaped = wait4(-1, nullptr, WNOHANG | __WALL, nullptr)) > 0) {
  }
  if (reaped < 0) return kInitAndProgram;
  const std::uint32_t threads = count_threads() + 1;
  kill(-1, SIGKILL);
  while (wait4(-1, nullptr, __WALL, nullptr) > 0) {
  }
  return threads;
}

void report_exit(int status, std::uint32_t threads) {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  wire::Notice notice;
  notice.kind = wire::NoticeKind::exited;
  notice.value = status;
  notice.threads = threads;
  notice.usage = cpu_usage(used);
  static_cast<void>(send_notice(wire::kInitFd, notice));
}

/// Reaps whoever has ended. True when the program was among them; then this process is the last.
bool reap(Init& self) {
  signalfd_siginfo info[8];
  static_cast<void>(read(self.children, info, sizeof info));
  int status = 0;
  for (pid_t pid = 0; (pid = wait4(-1, &status, WNOHANG | __WALL, nullptr)) > 0;) {
    if (pid != self.program) continue;
    report_exit(status, clear_out());
    return true;
  }
  return false;
}

/// The program has joined from outside; the one who brought it has ended, so it is a child of this process by
/// now or in a moment. One that has ended meanwhile was reaped as a stranger.
Failure adopt(Init& self, pid_t pid) {
  if (pid < 2) return Failure{"adopt the program", EINVAL};
  // It may not have taken its identity yet, and be somebody who may not be signalled.
  if (kill(pid, 0) != 0 && errno != EPERM) return Failure{"adopt the program", errno};
  self.program = pid;
  wire::Notice notice;
  notice.kind = wire::NoticeKind::joined;
  return send_notice(wire::kInitFd, notice);
}

/// False: the server is gone, or the program could not be started.
bool serve_request(Init& self) {
  Message message;
  if (receive(wire::kInitFd, self.buffer, sizeof self.buffer, message)) return false;
  wire::Reader reader(message.data);
  const auto request = reader.value<wire::Request>();
  if (request.kind == wire::RequestKind::signal && self.program > 0) {
    kill(self.program, static_cast<int>(request.value));
    return true;
  }
  if (self.program != 0) return false;
  Failure failure{"unknown request", EPROTO};
  if (request.kind == wire::RequestKind::start) failure = start_program(reader, message, self.program);
  if (request.kind == wire::RequestKind::adopt) failure = adopt(self, static_cast<pid_t>(request.value));
  if (failure) send_failure(wire::kInitFd, failure);
  return !failure;
}

}  // namespace

int run_init() {
  static Init self;
  if (const Failure failure = get_ready(self)) {
    send_failure(wire::kInitFd, failure);
    return 1;
  }
  for (;;) {
    pollfd sources[] = {{wire::kInitFd, POLLIN, 0}, {self.children, POLLIN, 0}};
    if (poll(sources, 2, -1) < 0 && errno != EINTR) return 1;
    if (sources[1].revents != 0 && reap(self)) return 0;
    if (sources[0].revents != 0 && !serve_request(self)) return 1;
  }
}

}  // namespace prims::launcher

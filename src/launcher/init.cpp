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
  LAUNCHER_TRY(check("die with the launcher", prctl(PR_SET_PDEATHSIG, SIGKILL)));
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  LAUNCHER_TRY(check("open /dev/null", null));
  for (int fd = 0; fd < 3; ++fd) LAUNCHER_TRY(check("standard descriptors", fd == null ? 0 : dup2(null, fd)));
  if (null > 2) close(null);
  return check("close on exec", fcntl(wire::kInitFd, F_SETFD, FD_CLOEXEC));
}

Failure watch_children(Init& self) {
  sigset_t all;
  sigfillset(&all);
  LAUNCHER_TRY(check("block signals", sigprocmask(SIG_SETMASK, &all, nullptr)));
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  self.children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  return check("signalfd", self.children);
}

Failure get_ready(Init& self) {
  wire::Spec spec;
  LAUNCHER_TRY(harden());
  LAUNCHER_TRY(watch_children(self));
  LAUNCHER_TRY(map_spec(spec));
  close(wire::kSpecFd);
  LAUNCHER_TRY(restrict_files(spec));
  LAUNCHER_TRY(filter_system_calls(spec));
  wire::Notice notice;
  notice.kind = wire::NoticeKind::ready;
  return send_notice(wire::kInitFd, notice);
}

void report_exit(int status, const rusage& used, std::uint32_t threads) {
  wire::Notice notice;
  notice.kind = wire::NoticeKind::exited;
  notice.value = status;
  notice.threads = threads;
  notice.usage = cpu_usage(used);
  static_cast<void>(send_notice(wire::kInitFd, notice));
}

/// Reaps whoever has ended. True when the program was among them. What it left behind is counted while it is
/// still there: a burst of processes may be shorter than the pause of whoever samples from outside.
bool reap(Init& self) {
  signalfd_siginfo info[8];
  static_cast<void>(read(self.children, info, sizeof info));
  for (;;) {
    siginfo_t ended{};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return false;
    const bool program = ended.si_pid == self.program;
    const std::uint32_t threads = program ? count_threads() : 0;
    int status = 0;
    rusage used{};
    wait4(ended.si_pid, &status, 0, &used);
    if (!program) continue;
    report_exit(status, used, threads);
    return true;
  }
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
  if (request.kind != wire::RequestKind::start || self.program != 0) return false;
  if (const Failure failure = start_program(reader, message, self.program)) {
    send_failure(wire::kInitFd, failure);
    return false;
  }
  return true;
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

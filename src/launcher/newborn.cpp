#include "launcher/newborn.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace prims::launcher {

Failure enter_limits(int first_entry, int entries) {
  for (int entry = first_entry; entry < first_entry + entries; ++entry) {
    LAUNCHER_TRY(check("enter limits", write(entry, "0", 1)));
  }
  return {};
}

Failure wait_at(int barrier) {
  char go = 0;
  const ssize_t got = read(barrier, &go, 1);
  LAUNCHER_TRY(check("wait for the launcher", got));
  return got == 1 ? Failure{} : Failure{"wait for the launcher", EPIPE};
}

/// Plain system calls: the C library's setresuid() would concern itself with threads.
Failure take_identity(std::uint32_t id) {
  LAUNCHER_TRY(check("setresgid", syscall(SYS_setresgid, id, id, id)));
  return check("setresuid", syscall(SYS_setresuid, id, id, id));
}

Failure die_with_parent() {
  return check("die with the launcher", prctl(PR_SET_PDEATHSIG, SIGKILL));
}

Failure take_null_descriptors() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  LAUNCHER_TRY(check("open /dev/null", null));
  for (int fd = 0; fd < 3; ++fd) LAUNCHER_TRY(check("standard descriptors", fd == null ? 0 : dup2(null, fd)));
  if (null > 2) close(null);
  return {};
}

Failure watch_children(int& children) {
  sigset_t set;
  sigfillset(&set);
  LAUNCHER_TRY(check("block signals", sigprocmask(SIG_SETMASK, &set, nullptr)));
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return check("signalfd", children);
}

namespace {

Failure set_names(std::string_view hostname) {
  constexpr std::string_view kNone = "(none)";
  LAUNCHER_TRY(check("sethostname", sethostname(hostname.data(), hostname.size())));
  return check("setdomainname", setdomainname(kNone.data(), kNone.size()));
}

Failure raise_loopback() {
  const int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  LAUNCHER_TRY(check("loopback socket", socket_fd));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const Failure failure = check("loopback up", ioctl(socket_fd, SIOCSIFFLAGS, &request));
  close(socket_fd);
  return failure;
}

}  // namespace

Failure settle_in(std::uint32_t id, std::string_view hostname) {
  LAUNCHER_TRY(take_identity(id));
  LAUNCHER_TRY(die_with_parent());
  LAUNCHER_TRY(check("setsid", setsid()));
  LAUNCHER_TRY(check("unshare cgroup namespace", unshare(CLONE_NEWCGROUP)));
  LAUNCHER_TRY(set_names(hostname));
  return raise_loopback();
}

}  // namespace prims::launcher

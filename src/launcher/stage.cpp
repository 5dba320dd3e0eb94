#include "launcher/stage.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/channel.h"
#include "launcher/kernel.h"
#include "launcher/lock_down.h"
#include "launcher/namespaces.h"
#include "launcher/newborn.h"
#include "launcher/program.h"
#include "launcher/usage.h"

namespace prims::launcher {
namespace {

struct Stage {
  const wire::Spec* spec = nullptr;
  int executable = -1;  ///< this program, for each init
  int children = -1;    ///< signalfd for SIGCHLD
  pid_t program = 0;
  pid_t members[wire::kMaxSlots] = {};
  char buffer[wire::kMaxMessage] = {};
};

/// Its own socket, the Spec and the program for each init stay; the program takes a number that is free.
Failure close_inherited(int program, int& kept) {
  kept = wire::kFirstEntryFd;
  LAUNCHER_TRY(check("keep the program", program == kept ? 0 : dup3(program, kept, O_CLOEXEC)));
  LAUNCHER_TRY(check("close descriptors", kernel::close_range(static_cast<unsigned>(kept) + 1, ~0U, 0)));
  LAUNCHER_TRY(check("keep the stage's socket", fcntl(wire::kInitFd, F_SETFD, FD_CLOEXEC)));
  LAUNCHER_TRY(check("keep the spec", fcntl(wire::kSpecFd, F_SETFD, FD_CLOEXEC)));
  close(wire::kControlFd);
  return take_null_descriptors();
}

// --- the template program
// -------------------------------------------------------------------------------------------------------

/// No Landlock: from within a domain nobody enters namespaces of a process outside (hook of ptrace access).
/// Its mounts are a copy of the stage's, completed like those of any sandbox. It lives in the stage's pid
/// namespace, because that must be an ancestor of those that its forks join.
Failure become_template(const wire::Spec& spec, const Program& program) {
  LAUNCHER_TRY(die_with_parent());
  LAUNCHER_TRY(complete_root(spec, Proc::of_stage));
  LAUNCHER_TRY(drop_privileges(spec, Whose::template_program));
  LAUNCHER_TRY(filter_system_calls(spec.template_filter));
  return become(program);
}

Failure start_template(Stage& self, wire::Reader& request, const Message& message) {
  static Program program;
  LAUNCHER_TRY(read_program(request, message, program));
  self.program = kernel::clone3(CLONE_NEWNS, nullptr);
  LAUNCHER_TRY(check("clone the template", self.program));
  if (self.program == 0) {
    send_failure(wire::kInitFd, become_template(*self.spec, program), -1);
    _exit(127);
  }
  close_all(message);
  close_all(program.descriptors);
  return {};
}

// --- sandboxes for its forks
// -------------------------------------------------------------------------------------------------------

/// In the new process: its own socket takes the place of the stage's. Only returns with a failure.
Failure become_member(const Stage& self, const Message& message, int barrier) {
  const wire::Spec& spec = *self.spec;
  LAUNCHER_TRY(wait_at(barrier));
  LAUNCHER_TRY(check("init socket", dup2(message.descriptors[0], wire::kInitFd)));
  for (std::size_t entry = 1; entry < message.descriptor_count; ++entry) {
    LAUNCHER_TRY(enter_limits(message.descriptors[entry], 1));
  }
  LAUNCHER_TRY(settle_in(spec.settings.inside_id, spec.hostname));
  LAUNCHER_TRY(complete_root(spec, Proc::of_new_namespaces));
  LAUNCHER_TRY(drop_privileges(spec));
  return execute_init(self.executable);
}

Failure open_barrier(const Stage& self, pid_t pid, std::uint32_t slot, int barrier) {
  const wire::Settings& settings = self.spec->settings;
  const Ids ids{settings.inside_id, slot_id(*self.spec, slot)};
  LAUNCHER_TRY(write_id_maps(pid, ids, ids));
  return check("open the barrier", write(barrier, "", 1));
}

Failure announce(std::uint32_t slot, int pidfd) {
  wire::Notice notice;
  notice.kind = wire::NoticeKind::created;
  notice.value = static_cast<std::int32_t>(slot);
  return send_notice(wire::kInitFd, notice, pidfd);
}

Failure make_member(Stage& self, const Message& message, std::uint32_t slot) {
  const wire::Settings& settings = self.spec->settings;
  if (slot >= settings.slots || self.members[slot] != 0) return Failure{"make: slot", EINVAL};
  if (message.descriptor_count != std::size_t{1} + settings.member_entries)
    return Failure{"make: descriptors", EPROTO};
  int barrier[2] = {};
  LAUNCHER_TRY(check("barrier", pipe2(barrier, O_CLOEXEC)));
  int pidfd = -1;
  const pid_t pid = kernel::clone3(kSandboxNamespaces | CLONE_PIDFD, &pidfd);
  if (pid == 0) {
    close(barrier[1]);
    send_failure(wire::kInitFd, become_member(self, message, barrier[0]));
    _exit(1);
  }
  const Failure cloned = check("clone", pid);
  if (!cloned) self.members[slot] = pid;
  Failure failure = cloned;
  if (!failure) failure = open_barrier(self, pid, slot, barrier[1]);
  if (!failure) failure = announce(slot, pidfd);
  if (pidfd >= 0) close(pidfd);
  for (const int end : barrier) close(end);
  return failure;
}

// --- serving
// -------------------------------------------------------------------------------------------------------

void report_end(Stage& self, std::uint32_t slot, const rusage& used) {
  self.members[slot] = 0;
  wire::Notice notice;
  notice.kind = wire::NoticeKind::ended;
  notice.value = static_cast<std::int32_t>(slot);
  notice.usage = cpu_usage(used);
  static_cast<void>(send_notice(wire::kInitFd, notice));
}

void report_exit(int status, const rusage& used) {
  wire::Notice notice;
  notice.kind = wire::NoticeKind::exited;
  notice.value = status;
  notice.usage = cpu_usage(used);
  static_cast<void>(send_notice(wire::kInitFd, notice));
}

/// Reaps whoever has ended. Without the template program there are no more forks; those that live go on.
void reap(Stage& self) {
  signalfd_siginfo info[8];
  static_cast<void>(read(self.children, info, sizeof info));
  int status = 0;
  rusage used{};
  for (pid_t pid = 0; (pid = wait4(-1, &status, WNOHANG, &used)) > 0;) {
    if (pid == self.program) report_exit(status, used);
    for (std::uint32_t slot = 0; slot < self.spec->settings.slots; ++slot) {
      if (self.members[slot] == pid) report_end(self, slot, used);
    }
  }
}

/// False: the server is gone or asks for nonsense.
bool serve_request(Stage& self) {
  Message message;
  if (receive(wire::kInitFd, self.buffer, sizeof self.buffer, message) || message.data.empty()) return false;
  wire::Reader reader(message.data);
  const auto request = reader.value<wire::Request>();
  if (request.kind == wire::RequestKind::signal && self.program > 0) {
    kill(self.program, static_cast<int>(request.value));
    return true;
  }
  if (request.kind == wire::RequestKind::start && self.program == 0) {
    const Failure failure = start_template(self, reader, message);
    if (failure) send_failure(wire::kInitFd, failure, -1);
    return !failure;
  }
  if (request.kind != wire::RequestKind::make) return false;
  const Failure failure = make_member(self, message, request.value);
  if (failure) send_failure(wire::kInitFd, failure, static_cast<int>(request.value));
  close_all(message);
  return true;
}

void serve(Stage& self) {
  for (;;) {
    pollfd sources[] = {{wire::kInitFd, POLLIN, 0}, {self.children, POLLIN, 0}};
    if (poll(sources, 2, -1) < 0 && errno != EINTR) return;
    if (sources[1].revents != 0) reap(self);
    if (sources[0].revents != 0 && !serve_request(self)) return;
  }
}

}  // namespace

Failure become_stage(const FirstProcess& first) {
  static Stage self;
  const wire::Spec& spec = first.spec;
  self.spec = &spec;
  LAUNCHER_TRY(enter_limits(wire::kFirstEntryFd, spec.settings.entries));
  LAUNCHER_TRY(wait_at(first.barrier));
  LAUNCHER_TRY(settle_in(spec.settings.inside_id, spec.hostname));
  LAUNCHER_TRY(build_stage_root(spec, first.trees));
  LAUNCHER_TRY(close_inherited(first.program, self.executable));
  LAUNCHER_TRY(watch_children(self.children));
  // Files of new processes in /proc belong to this user only while memory may be looked at; who has fewer
  // capabilities may not look all the same (man 2 ptrace, "Ptrace access mode checking").
  LAUNCHER_TRY(check("dumpable", prctl(PR_SET_DUMPABLE, 1)));
  LAUNCHER_TRY(check("no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  wire::Notice notice;
  notice.kind = wire::NoticeKind::ready;
  LAUNCHER_TRY(send_notice(wire::kInitFd, notice));
  serve(self);
  _exit(0);
}

}  // namespace prims::launcher

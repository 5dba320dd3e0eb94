#include "launcher/outside.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "launcher/attach.h"
#include "launcher/channel.h"
#include "launcher/descriptors.h"
#include "launcher/files.h"
#include "launcher/first_process.h"
#include "launcher/kernel.h"
#include "launcher/namespaces.h"
#include "launcher/spec_file.h"
#include "launcher/stage.h"
#include "launcher/text.h"
#include "launcher/trees.h"
#include "launcher/usage.h"

namespace prims::launcher {
namespace {

/// What this process holds. All of it lives as long as the process: nothing is released one by one.
struct Launcher {
  wire::Spec spec;
  Trees trees;
  pid_t first_pid = -1;
  int first_pidfd = -1;
  int barrier = -1;
  OwnerNamespace owner;
  OwnerNamespace slot_owners[wire::kMaxSlots];  ///< of a stage, made when first needed
  char buffer[wire::kMaxMessage] = {};
};

Failure take_trees(Launcher& self) {
  for (int& fd : self.trees.fds) fd = -1;
  std::size_t number = 0;
  return self.spec.trees.each(
      [&self, &number](const wire::Tree& tree) { return take_tree(tree, self.trees.fds[number++]); });
}

/// The new process waits at the barrier, which opens by one byte from here and breaks when this process dies.
Failure create_first_process(Launcher& self) {
  const int program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
  LAUNCHER_TRY(check("open the launcher", program));
  int ends[2] = {};
  LAUNCHER_TRY(check("barrier", pipe2(ends, O_CLOEXEC)));
  self.first_pid = kernel::clone3(kSandboxNamespaces | CLONE_PIDFD, &self.first_pidfd);
  LAUNCHER_TRY(check("clone", self.first_pid));
  if (self.first_pid == 0) {
    close(ends[1]);
    const FirstProcess first{self.spec, self.trees, ends[0], program};
    send_failure(wire::kInitFd, self.spec.has(wire::kStage) ? become_stage(first) : become_init(first));
    _exit(1);
  }
  close(ends[0]);
  close(program);
  self.barrier = ends[1];
  return {};
}

Failure prefer_as_memory_victim(pid_t pid) {
  Text path;
  path.add("/proc/").add(static_cast<std::uint64_t>(pid)).add("/oom_score_adj");
  return write_file("write oom_score_adj", path.c_str(), "1000");
}

Failure announce(const Launcher& self) {
  wire::Notice notice;
  notice.kind = wire::NoticeKind::created;
  notice.value = self.first_pid;
  return send_notice(wire::kControlFd, notice, self.first_pidfd);
}

Failure await_proceed(Launcher& self) {
  Message message;
  LAUNCHER_TRY(receive(wire::kControlFd, self.buffer, sizeof self.buffer, message));
  const auto request = wire::Reader(message.data).value<wire::Request>();
  return request.kind == wire::RequestKind::proceed ? Failure{} : Failure{"wait for the server", EPIPE};
}

/// The trees are in the sandbox now, and its socket belongs to init alone.
void release_shared(Launcher& self) {
  close(self.barrier);
  for (const int fd : self.trees.fds) {
    if (fd >= 0) close(fd);
  }
  close(wire::kInitFd);
  for (int entry = 0; entry < self.spec.settings.entries; ++entry) close(wire::kFirstEntryFd + entry);
}

/// What is ignored stays so through every exec, down to the program.
Failure reset_signals() {
  for (int number = 1; number <= kernel::kLastSignal; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    LAUNCHER_TRY(check("reset signals", kernel::default_action(number)));
  }
  return {};
}

Failure make_sandbox(Launcher& self) {
  LAUNCHER_TRY(check("die with the server", prctl(PR_SET_PDEATHSIG, SIGKILL)));
  LAUNCHER_TRY(reset_signals());
  LAUNCHER_TRY(map_spec(wire::kSpecFd, self.spec));
  const auto first_unused = static_cast<unsigned>(wire::kFirstEntryFd + self.spec.settings.entries);
  LAUNCHER_TRY(check("close descriptors", kernel::close_range(first_unused, ~0U, 0)));
  const wire::Settings& settings = self.spec.settings;
  if (self.spec.has(wire::kOrdinaryUser)) {
    LAUNCHER_TRY(enter_outer_namespace());
  } else {
    LAUNCHER_TRY(check("setgroups", syscall(SYS_setgroups, 0, nullptr)));
    if (settings.owner_id != settings.outside_uid) {
      const wire::Slot user{settings.outside_uid, settings.outside_gid};
      LAUNCHER_TRY(make_owner_namespace(settings.owner_id, user, self.owner));
    }
  }
  LAUNCHER_TRY(take_trees(self));
  LAUNCHER_TRY(create_first_process(self));
  LAUNCHER_TRY(prefer_as_memory_victim(self.first_pid));
  LAUNCHER_TRY(write_stage_maps(self.first_pid, self.spec));
  LAUNCHER_TRY(announce(self));
  if (self.spec.has(wire::kAwaitProceed)) LAUNCHER_TRY(await_proceed(self));
  LAUNCHER_TRY(check("open the barrier", write(self.barrier, "", 1)));
  release_shared(self);
  return self.owner.process > 0 ? check("reap the owner namespace", waitpid(self.owner.process, nullptr, 0))
                                : Failure{};
}

/// Reaps the first process, with which its pid namespace has ended, and tells the server what all of it used.
int report_end(const Launcher& self) {
  rusage used{};
  int status = 0;
  while (wait4(self.first_pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
  wire::Notice notice;
  notice.kind = wire::NoticeKind::ended;
  notice.value = status;
  notice.usage = cpu_usage(used);
  static_cast<void>(send_notice(wire::kControlFd, notice));
  return 0;
}

Failure slot_owner(Launcher& self, std::uint32_t slot, int& fd) {
  OwnerNamespace& owner = self.slot_owners[slot];
  std::uint32_t number = 0;
  const Failure failure = self.spec.slots.each([&](const wire::Slot& user) {
    if (number++ != slot || owner.fd >= 0) return Failure{};
    LAUNCHER_TRY(make_owner_namespace(self.spec.settings.owner_id, user, owner));
    return check("reap the owner namespace", waitpid(owner.process, nullptr, 0));
  });
  fd = owner.fd;
  return failure;
}

/// One sandbox of a stage, named by the pidfd of its init.
Failure aim_at_slot(Launcher& self, const Message& message, std::uint32_t slot, AttachTarget& target) {
  if (slot >= self.spec.settings.slots) return Failure{"attach: slot", EPROTO};
  target.first_pidfd = message.descriptors[0];
  return slot_owner(self, slot, target.owner_namespace);
}

/// False: the server is gone or asks for nonsense, and the sandbox goes too.
bool serve_request(Launcher& self) {
  Message message;
  if (receive(wire::kControlFd, self.buffer, sizeof self.buffer, message)) return false;
  wire::Reader reader(message.data);
  const auto request = reader.value<wire::Request>();
  if (request.kind != wire::RequestKind::attach) return false;
  AttachTarget target{self.first_pidfd, self.owner.fd, self.spec.has(wire::kOrdinaryUser)};
  std::size_t number = 0;
  Failure failure;
  if (message.descriptor_count > 0) failure = aim_at_slot(self, message, request.value, target);
  if (!failure) failure = attach_all(target, reader, number);
  close_all(message);
  if (failure) {
    send_failure(wire::kControlFd, failure, static_cast<int>(number));
    return true;
  }
  wire::Notice notice;
  notice.kind = wire::NoticeKind::attached;
  return !send_notice(wire::kControlFd, notice);
}

int serve(Launcher& self) {
  for (;;) {
    pollfd sources[] = {{wire::kControlFd, POLLIN, 0}, {self.first_pidfd, POLLIN, 0}};
    if (poll(sources, 2, -1) < 0 && errno != EINTR) break;
    if (sources[1].revents != 0) break;
    if (sources[0].revents != 0 && !serve_request(self)) break;
  }
  kill(self.first_pid, SIGKILL);
  return report_end(self);
}

}  // namespace

int run_launcher() {
  static Launcher self;
  if (const Failure failure = make_sandbox(self)) {
    if (self.first_pid > 0) kill(self.first_pid, SIGKILL);
    send_failure(wire::kControlFd, failure);
    return 1;
  }
  return serve(self);
}

}  // namespace prims::launcher

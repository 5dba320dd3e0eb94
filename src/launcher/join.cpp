#include "launcher/join.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/descriptors.h"
#include "launcher/kernel.h"
#include "launcher/lock_down.h"
#include "launcher/newborn.h"

namespace prims::launcher {
namespace {

constexpr int kJoined =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

/// One request, and what the processes that share this memory tell about it.
struct Attempt {
  Message message;
  std::size_t entries = 0;
  std::uint32_t missing = 0;
  Descriptors descriptors;
  Failure failure;
  pid_t pid = -1;  ///< of the fork, in its sandbox
};

/// The kernel does not carry a registration through two processes that share memory; the C library believes
/// in it (man 2 rseq).
void register_rseq() {
  const auto self = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  if (__rseq_size == 0) return;
  syscall(SYS_rseq, self + static_cast<std::uintptr_t>(__rseq_offset), 32U, 0, RSEQ_SIG);
}

/// Everything that init and the plain program do before they count as locked down, in one process.
Failure confine(const wire::Spec& spec, const Attempt& attempt) {
  register_rseq();
  LAUNCHER_TRY(take_identity(spec.settings.inside_id));
  LAUNCHER_TRY(check("dumpable", prctl(PR_SET_DUMPABLE, 1)));
  LAUNCHER_TRY(check("setsid", setsid()));
  LAUNCHER_TRY(place(attempt.descriptors));
  LAUNCHER_TRY(drop_privileges(spec));
  LAUNCHER_TRY(restrict_files(spec));
  return filter_system_calls(spec.fork_filter);
}

/// First of the two processes in between: it is in every namespace of the sandbox but the pid namespace,
/// which holds for children only.
Failure enter_sandbox(const Attempt& attempt) {
  for (std::size_t entry = 1; entry <= attempt.entries; ++entry) {
    LAUNCHER_TRY(enter_limits(attempt.message.descriptors[entry], 1));
  }
  return check("setns", setns(attempt.message.descriptors[0], kJoined));
}

/// The second is in the pid namespace, so its child becomes one of init when it ends. Both share the memory
/// of the template, which sleeps meanwhile: only the fork itself costs a copy.
Side fork_inside(Attempt& attempt) {
  const pid_t between = vfork();
  if (between == 0) {
    const pid_t pid = fork();
    if (pid == 0) return Side::child;
    attempt.failure = check("fork", pid);
    attempt.pid = pid;
    kernel::shared_with_vfork(&attempt);
    _exit(0);
  }
  attempt.failure = check("vfork", between);
  kernel::shared_with_vfork(&attempt);
  if (between > 0) waitpid(between, nullptr, 0);
  return Side::parent;
}

Side fork_into_sandbox(Attempt& attempt) {
  const pid_t outer = vfork();
  if (outer == 0) {
    attempt.failure = enter_sandbox(attempt);
    if (!attempt.failure && fork_inside(attempt) == Side::child) return Side::child;
    kernel::shared_with_vfork(&attempt);
    _exit(0);
  }
  const Failure failure = check("vfork", outer);
  kernel::shared_with_vfork(&attempt);
  if (failure) attempt.failure = failure;
  if (outer > 0) waitpid(outer, nullptr, 0);
  return Side::parent;
}

bool read_request(int socket, Attempt& attempt) {
  static char buffer[256];
  if (receive(socket, buffer, sizeof buffer, attempt.message)) return false;
  wire::Reader reader(attempt.message.data);
  const auto request = reader.value<wire::Request>();
  attempt.missing = reader.value<std::uint32_t>();
  attempt.entries = request.value;
  return reader.good() && request.kind == wire::RequestKind::join && attempt.entries <= wire::kMaxEntries &&
         attempt.message.descriptor_count > attempt.entries;
}

Failure answer(int socket, const Attempt& attempt) {
  if (attempt.failure) {
    send_failure(socket, attempt.failure);
    return {};
  }
  wire::Notice notice;
  notice.kind = wire::NoticeKind::joined;
  notice.value = attempt.pid;
  return send_notice(socket, notice);
}

void call(void (*hook)()) {
  if (hook != nullptr) hook();
}

Side serve_one(int socket, const wire::Spec& spec, const ForkHooks& hooks) {
  static Attempt attempt;
  attempt = {};
  if (!read_request(socket, attempt)) _exit(0);
  attempt.failure = park(attempt.message, 1 + attempt.entries, attempt.missing, attempt.descriptors);
  if (!attempt.failure) {
    call(hooks.before);
    if (fork_into_sandbox(attempt) == Side::child) {
      if (confine(spec, attempt)) _exit(126);
      call(hooks.in_child);
      return Side::child;
    }
    call(hooks.in_parent);
  }
  close_all(attempt.message);
  close_all(attempt.descriptors);
  if (answer(socket, attempt)) _exit(0);
  return Side::parent;
}

}  // namespace

void serve_forks(int socket, const wire::Spec& spec, const ForkHooks& hooks) {
  wire::Notice notice;
  notice.kind = wire::NoticeKind::ready;
  if (send_notice(socket, notice)) _exit(0);
  while (serve_one(socket, spec, hooks) == Side::parent) {
  }
}

}  // namespace prims::launcher

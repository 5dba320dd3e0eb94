#include "launcher/attach.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/kernel.h"
#include "launcher/trees.h"

namespace prims::launcher {
namespace {

struct Attachments {
  wire::Attach list[wire::kMaxAttachments];
  int fds[wire::kMaxAttachments] = {};
  std::size_t count = 0;
};

Failure take(Attachments& taken, wire::Reader& reader, int owner_namespace) {
  while (!reader.done()) {
    if (taken.count == wire::kMaxAttachments) return Failure{"too many attachments", E2BIG};
    wire::Attach& attach = taken.list[taken.count];
    if (!read(reader, attach)) return Failure{"attachment list", EPROTO};
    LAUNCHER_TRY(take_attachment(attach, owner_namespace, taken.fds[taken.count]));
    ++taken.count;
  }
  return {};
}

Failure mount_inside(const AttachTarget& target, const Attachments& taken, std::size_t& number) {
  const int namespaces = target.ordinary_user ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS;
  LAUNCHER_TRY(check("enter the sandbox", setns(target.first_pidfd, namespaces)));
  for (number = 0; number < taken.count; ++number) {
    LAUNCHER_TRY(put_tree("move_mount", taken.fds[number], taken.list[number].target.data()));
  }
  return {};
}

/// A child enters the sandbox, because there is no way back out of it. It shares our memory until it ends.
Failure mount_by_child(const AttachTarget& target, const Attachments& taken, std::size_t& number) {
  struct Shared {
    Failure failure;
    std::size_t number = 0;
  };
  static Shared shared;
  shared = {};
  const pid_t pid = vfork();
  if (pid == 0) {
    shared.failure = mount_inside(target, taken, shared.number);
    kernel::shared_with_vfork(&shared);
    _exit(0);
  }
  LAUNCHER_TRY(check("vfork", pid));
  kernel::shared_with_vfork(&shared);
  waitpid(pid, nullptr, 0);
  number = shared.number;
  return shared.failure;
}

}  // namespace

Failure attach_all(const AttachTarget& target, wire::Reader& attachments, std::size_t& number) {
  static Attachments taken;
  taken = {};
  Failure failure = take(taken, attachments, target.owner_namespace);
  number = taken.count;
  if (!failure) failure = mount_by_child(target, taken, number);
  for (std::size_t i = 0; i < taken.count; ++i) close(taken.fds[i]);
  return failure;
}

}  // namespace prims::launcher

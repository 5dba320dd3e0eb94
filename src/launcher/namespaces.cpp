#include "launcher/namespaces.h"

#include <signal.h>

#include "launcher/files.h"
#include "launcher/kernel.h"
#include "launcher/text.h"

namespace prims::launcher {
namespace {

Text process_file(pid_t pid, std::string_view name) {
  Text path;
  path.add("/proc/").add(static_cast<std::uint64_t>(pid)).add("/").add(name);
  return path;
}

Text one_id(Ids ids) {
  Text line;
  line.add(ids.inside).add(" ").add(ids.outside).add(" 1\n");
  return line;
}

Failure write_maps(pid_t pid, std::string_view uids, std::string_view gids) {
  LAUNCHER_TRY(write_file("write setgroups", process_file(pid, "setgroups").c_str(), "deny"));
  LAUNCHER_TRY(write_file("write uid_map", process_file(pid, "uid_map").c_str(), uids));
  return write_file("write gid_map", process_file(pid, "gid_map").c_str(), gids);
}

/// A line for each of kMaxSlots, and what the kernel takes in one write: a page.
using MapText = BasicText<4096>;

/// The id-mapping namespace lives as long as a descriptor of it; its process only has to exist for a moment.
Failure open_owner_namespace(pid_t pid, std::uint32_t owner_id, wire::Slot user, int& fd) {
  LAUNCHER_TRY(write_id_maps(pid, {owner_id, user.uid}, {owner_id, user.gid}));
  fd = open(process_file(pid, "ns/user").c_str(), O_RDONLY | O_CLOEXEC);
  return check("open the owner namespace", fd);
}

}  // namespace

Failure enter_outer_namespace() {
  const Ids uid{geteuid(), geteuid()};
  const Ids gid{getegid(), getegid()};
  LAUNCHER_TRY(check("unshare the outer namespace", unshare(CLONE_NEWUSER | CLONE_NEWNS)));
  return write_id_maps(getpid(), uid, gid);
}

Failure write_id_maps(pid_t pid, Ids uid, Ids gid) {
  return write_maps(pid, one_id(uid).view(), one_id(gid).view());
}

std::uint32_t slot_id(const wire::Spec& spec, std::uint32_t slot) {
  const bool own = spec.each_slot_has_its_own_ids();
  return spec.settings.inside_id + (own ? slot + 1 : 0);
}

Failure write_stage_maps(pid_t pid, const wire::Spec& spec) {
  MapText uids;
  MapText gids;
  const auto add = [&uids, &gids](std::uint32_t inside, wire::Slot outside) {
    uids.add(inside).add(" ").add(outside.uid).add(" 1\n");
    gids.add(inside).add(" ").add(outside.gid).add(" 1\n");
  };
  const wire::Settings& settings = spec.settings;
  add(settings.inside_id, {settings.outside_uid, settings.outside_gid});
  std::uint32_t slot = 0;
  spec.slots.each([&](const wire::Slot& outside) {
    add(slot_id(spec, slot++), outside);
    return false;
  });
  return write_maps(pid, uids.view(), gids.view());
}

Failure make_owner_namespace(std::uint32_t owner_id, wire::Slot user, OwnerNamespace& made) {
  made.process = kernel::clone3(CLONE_NEWUSER, nullptr);
  LAUNCHER_TRY(check("clone the owner namespace", made.process));
  if (made.process == 0) {
    for (;;) pause();
  }
  const Failure failure = open_owner_namespace(made.process, owner_id, user, made.fd);
  kill(made.process, SIGKILL);
  return failure;
}

}  // namespace prims::launcher

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

/// The id-mapping namespace lives as long as a descriptor of it; its process only has to exist for a moment.
Failure open_owner_namespace(pid_t pid, const wire::Settings& settings, int& fd) {
  LAUNCHER_TRY(write_id_maps(pid, {settings.owner_id, settings.outside_uid},
                             {settings.owner_id, settings.outside_gid}));
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
  LAUNCHER_TRY(write_file("write setgroups", process_file(pid, "setgroups").c_str(), "deny"));
  LAUNCHER_TRY(write_file("write uid_map", process_file(pid, "uid_map").c_str(), one_id(uid).view()));
  return write_file("write gid_map", process_file(pid, "gid_map").c_str(), one_id(gid).view());
}

Failure make_owner_namespace(const wire::Settings& settings, OwnerNamespace& made) {
  made.process = kernel::clone3(CLONE_NEWUSER, nullptr);
  LAUNCHER_TRY(check("clone the owner namespace", made.process));
  if (made.process == 0) {
    for (;;) pause();
  }
  const Failure failure = open_owner_namespace(made.process, settings, made.fd);
  kill(made.process, SIGKILL);
  return failure;
}

}  // namespace prims::launcher

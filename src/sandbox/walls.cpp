#include "sandbox/walls.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/result.h"

namespace prims::sandbox {
namespace {

std::string whole_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<long> sysctl(const char* path) {
  std::ifstream file(path);
  long value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

bool filtered() {
  return whole_file("/proc/self/status").find("\nSeccomp:\t2") != std::string::npos;
}

/// Containers cover parts of /proc; the kernel then refuses a new procfs that would show them.
bool proc_is_masked() {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, root, mount_point;
    fields >> id >> parent >> device >> root >> mount_point;
    const bool ordinary = mount_point == "/proc/sys/fs/binfmt_misc";
    if (mount_point.starts_with("/proc/") && !ordinary) return true;
  }
  return false;
}

bool in_chroot() {
  struct stat own{};
  struct stat first{};
  return ::stat("/", &own) == 0 && ::stat("/proc/1/root/.", &first) == 0 &&
         (own.st_ino != first.st_ino || own.st_dev != first.st_dev);
}

std::string outside_of_map() {
  return "the container's user namespace does not hold the uids that sandboxes are to use (see "
         "/proc/self/uid_map): "
         "set first_uid and uid_count to a range inside it, or run as an ordinary user";
}

constexpr const char* kNoNamespaces =
    "user namespaces are switched off (user.max_user_namespaces is 0): as root, `sysctl -w "
    "user.max_user_namespaces=15000`, and the same line without `sysctl -w` in /etc/sysctl.d/ to keep it";
constexpr const char* kNoUnprivileged =
    "user namespaces are for root only here (kernel.unprivileged_userns_clone is 0): as root, `sysctl -w "
    "kernel.unprivileged_userns_clone=1`";
constexpr const char* kAppArmor =
    "AppArmor takes the rights out of user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1): "
    "as root, "
    "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor profile for this program "
    "with `userns,`";
constexpr const char* kContainerFilter =
    "a seccomp filter, probably the container's, refuses it: start the container with `--security-opt "
    "seccomp=unconfined`, or a profile that allows clone, unshare, setns, mount, umount2, pivot_root, "
    "open_tree, "
    "move_mount and mount_setattr";
constexpr const char* kMaskedProc =
    "parts of /proc are covered here, so the kernel refuses a new /proc: start the container with "
    "`--security-opt "
    "systempaths=unconfined`";
constexpr const char* kChroot =
    "this process runs in a chroot, where the kernel refuses user namespaces: start it outside";
constexpr const char* kUnknown =
    "no setting that is known to forbid it was found: look for a security module (`dmesg`, audit log) or "
    "start the "
    "container with fewer restrictions";

}  // namespace

std::string wall_behind(const FailedStep& failed) {
  const bool refused = failed.error == EPERM || failed.error == EACCES;
  if (failed.error == ENOSPC || failed.error == EUSERS) {
    if (sysctl("/proc/sys/user/max_user_namespaces") == 0) return kNoNamespaces;
    return fmt::format("a count of namespaces in /proc/sys/user is used up ({}): raise the one that is low",
                       errno_text(failed.error));
  }
  if (failed.step.find("uid_map") != std::string::npos && ::geteuid() == 0) return outside_of_map();
  if (refused && failed.step.find("proc") != std::string::npos && proc_is_masked()) return kMaskedProc;
  if (refused && sysctl("/proc/sys/kernel/unprivileged_userns_clone") == 0) return kNoUnprivileged;
  if (refused && sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1) return kAppArmor;
  if ((refused || failed.error == ENOSYS) && filtered()) return kContainerFilter;
  if (refused && in_chroot()) return kChroot;
  if (failed.error == ENOSYS || failed.error == EINVAL)
    return "this kernel is too old or built without it: use Linux 5.12 or newer";
  return kUnknown;
}

}  // namespace prims::sandbox

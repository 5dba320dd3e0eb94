#include "sandbox/examine.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/unique_fd.h"
#include "launcher/kernel.h"
#include "sandbox/cgroup1.h"
#include "sandbox/cgroup2.h"
#include "sandbox/rlimits.h"
#include "sandbox/seccomp_policy.h"
#include "sandbox/trial.h"
#include "sandbox/walls.h"

namespace prims::sandbox {
namespace {

namespace kernel = launcher::kernel;

SandboxUser user_of(const HostOptions& options) {
  if (::geteuid() == 0) return {options.first_uid + 1, options.first_uid + 1};
  return {::geteuid(), ::getegid()};
}

Attempt need(const char* step, bool truth) {
  if (truth) return {};
  return std::unexpected(FailedStep{step, 0});
}

Attempt make_processes_private(SandboxUser user) {
  PRIMS_RETURN_ON_ERROR(enter_mount_namespace(user, CLONE_NEWPID));
  return try_in_child([]() -> Attempt {
    PRIMS_RETURN_ON_ERROR(need("be process 1", ::getpid() == 1));
    return expect("mount proc", ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
  });
}

Attempt make_network(SandboxUser user) {
  PRIMS_RETURN_ON_ERROR(enter_namespaces(user, CLONE_NEWNET));
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  PRIMS_RETURN_ON_ERROR(expect("socket", socket.get()));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP;
  return expect("bring the loopback interface up", ::ioctl(socket.get(), SIOCSIFFLAGS, &request));
}

Attempt make_other_namespaces(SandboxUser user) {
  PRIMS_RETURN_ON_ERROR(enter_namespaces(user, CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP));
  return expect("sethostname", ::sethostname("sandbox", 7));
}

Attempt change_root(SandboxUser user) {
  PRIMS_RETURN_ON_ERROR(enter_mount_namespace(user));
  PRIMS_RETURN_ON_ERROR(expect("chdir", ::chdir("/tmp")));
  PRIMS_RETURN_ON_ERROR(expect("pivot_root", kernel::pivot_root(".", ".")));
  PRIMS_RETURN_ON_ERROR(expect("detach the old root", ::umount2(".", MNT_DETACH)));
  return need("leave the old root", ::access("/proc", F_OK) != 0);
}

Attempt forbid_further_namespaces(SandboxUser user) {
  PRIMS_RETURN_ON_ERROR(enter_namespaces(user, 0));
  const UniqueFd setting(::open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC));
  PRIMS_RETURN_ON_ERROR(expect("open max_user_namespaces of the sandbox", setting.get()));
  PRIMS_RETURN_ON_ERROR(expect("write max_user_namespaces of the sandbox", ::write(setting.get(), "0", 1)));
  return need("be refused a further user namespace", ::unshare(CLONE_NEWUSER) != 0);
}

/// A directory taken outside appears in a namespace that was made without it, as attachments do.
Attempt mount_late(SandboxUser user) {
  if (::geteuid() != 0) PRIMS_RETURN_ON_ERROR(enter_mount_namespace(user));
  const UniqueFd tree(
      static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, "/tmp", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  PRIMS_RETURN_ON_ERROR(expect("open_tree", tree.get()));
  return try_in_child([&tree, user]() -> Attempt {
    const bool nested = ::geteuid() != 0;
    PRIMS_RETURN_ON_ERROR(
        enter_mount_namespace(nested ? SandboxUser{SandboxUser::kInside, SandboxUser::kInside} : user));
    PRIMS_RETURN_ON_ERROR(expect("mkdir", ::mkdir("/tmp/late", 0700)));
    return expect("move_mount",
                  ::syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, "/tmp/late", MOVE_MOUNT_F_EMPTY_PATH));
  });
}

/// Files keep one owner on the host whichever uid a sandbox runs as. Only root can and needs to.
Attempt map_ids_of_mounts(SandboxUser user) {
  int ends[2] = {-1, -1};
  PRIMS_RETURN_ON_ERROR(expect("pipe", ::pipe2(ends, O_CLOEXEC)));
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const bool entered = enter_namespaces(user, 0).has_value();
    (void)!::write(writer.get(), entered ? "y" : "n", 1);
    while (true) ::pause();
  }
  writer.reset();
  char answer = 'n';
  (void)!::read(reader.get(), &answer, 1);
  const UniqueFd space(::open(fmt::format("/proc/{}/ns/user", owner).c_str(), O_RDONLY | O_CLOEXEC));
  ::kill(owner, SIGKILL);
  PRIMS_RETURN_ON_ERROR(need("make the namespace that maps", answer == 'y' && space));
  const UniqueFd tree(
      static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, "/tmp", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  PRIMS_RETURN_ON_ERROR(expect("open_tree", tree.get()));
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<std::uint64_t>(space.get());
  return expect("mount_setattr",
                ::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes));
}

Attempt filter_calls(SandboxUser) {
  const auto filter = compile_seccomp();
  if (!filter) return std::unexpected(FailedStep{filter.error().message, EINVAL});
  auto* code = reinterpret_cast<sock_filter*>(const_cast<std::uint8_t*>(filter->data()));
  const sock_fprog program{static_cast<unsigned short>(filter->size() / sizeof(sock_filter)), code};
  PRIMS_RETURN_ON_ERROR(expect("no_new_privs", ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  PRIMS_RETURN_ON_ERROR(expect("seccomp", ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)));
  PRIMS_RETURN_ON_ERROR(need("keep getppid", ::getppid() >= 0));
  errno = 0;
  return need("be refused clone3", ::syscall(SYS_clone3, nullptr, 0) < 0 && errno == ENOSYS);
}

int landlock_version() {
  return kernel::landlock_create_ruleset(nullptr, 0, kernel::kRulesetVersion);
}

Attempt restrict_files(SandboxUser) {
  PRIMS_RETURN_ON_ERROR(expect("landlock", landlock_version()));
  kernel::RulesetAttributes attributes;
  attributes.handled_fs = kernel::kReadFile | kernel::kReadDir;
  const UniqueFd rules(kernel::landlock_create_ruleset(&attributes, sizeof attributes.handled_fs, 0));
  PRIMS_RETURN_ON_ERROR(expect("landlock ruleset", rules.get()));
  PRIMS_RETURN_ON_ERROR(expect("no_new_privs", ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  PRIMS_RETURN_ON_ERROR(expect("landlock_restrict_self", kernel::landlock_restrict_self(rules.get())));
  return need("be refused /etc", ::open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0);
}

Attempt set_rlimits(SandboxUser) {
  for (const Rlimit& limit : make_rlimits(Limits{}, MemoryBound::processes)) {
    const auto resource = static_cast<__rlimit_resource>(limit.resource);
    const rlimit wanted{limit.soft, limit.hard};
    PRIMS_RETURN_ON_ERROR(expect("setrlimit", ::setrlimit(resource, &wanted)));
    rlimit got{};
    PRIMS_RETURN_ON_ERROR(expect("getrlimit", ::getrlimit(resource, &got)));
    PRIMS_RETURN_ON_ERROR(need("keep the limit", got.rlim_cur == limit.soft && got.rlim_max == limit.hard));
  }
  return {};
}

enum class Weight { required, stronger, informs };  // for Tier::namespaces, for Tier::full, for nothing

constexpr const char* kSameFix = "as for user namespaces";

/// root: user namespaces as well.
enum class Needs { nothing, user_namespaces, root };

struct Test {
  const char* name;
  const char* attempt;
  Attempt (*body)(SandboxUser);
  Needs needs = Needs::nothing;
  Weight weight = Weight::required;
};

constexpr const char* kUserNamespaces = "user namespaces";
constexpr const char* kLandlock = "Landlock";
constexpr const char* kCgroup1 = "cgroup v1";

constexpr Test kTests[] = {
    {kUserNamespaces, "a child enters one with one user mapped",
     [](SandboxUser user) { return enter_namespaces(user, 0); }},
    {"mount namespaces", "a child mounts a tmpfs in its own",
     [](SandboxUser user) { return enter_mount_namespace(user); }, Needs::user_namespaces},
    {"process namespaces", "a child becomes process 1 and mounts its own /proc", make_processes_private,
     Needs::user_namespaces},
    {"network namespaces", "a child brings up a loopback interface of its own", make_network,
     Needs::user_namespaces},
    {"ipc, uts and cgroup namespaces", "a child enters them and sets a host name", make_other_namespaces,
     Needs::user_namespaces},
    {"own root", "a child changes its root and detaches the old one", change_root, Needs::user_namespaces},
    {"no further user namespaces", "a child forbids them to itself and is refused one",
     forbid_further_namespaces, Needs::user_namespaces},
    {"late mounts", "a directory is mounted into a namespace from outside", mount_late,
     Needs::user_namespaces},
    {"id-mapped mounts", "a directory is cloned with other owners", map_ids_of_mounts, Needs::root},
    {"seccomp", "a child installs the system call filter and is refused", filter_calls},
    {"rlimits", "a child sets the limits of a sandbox", set_rlimits},
    {kLandlock, "a child gives up all files and is refused one", restrict_files, Needs::nothing,
     Weight::stronger},
};

std::string detail_of(const Test& test, const Attempt& attempt) {
  if (!attempt) {
    const FailedStep& failed = attempt.error();
    if (failed.error == 0) return fmt::format("did not {}", failed.step);
    return fmt::format("{}: {}", failed.step, errno_text(failed.error));
  }
  if (test.name == kLandlock) return fmt::format("works, ABI {}", landlock_version());
  return "works";
}

std::string fix_of(const Test& test, const FailedStep& failed) {
  if (test.name == kLandlock) {
    return "boot with `landlock` in the kernel's lsm= list (Linux 5.13 or newer); sandboxes work without it, "
           "with one wall less";
  }
  if (test.needs == Needs::root && failed.error == EINVAL) {
    return "the file system of /tmp does not support it; ext4, xfs, btrfs and tmpfs do in Linux 6.3 and "
           "newer";
  }
  return wall_behind(failed);
}

Finding find_out(const Test& test, SandboxUser user, bool user_namespaces) {
  Finding finding{.name = test.name, .attempt = test.attempt};
  if (test.needs == Needs::root && ::geteuid() != 0) {
    finding.holds = true;
    finding.detail = "not needed: files of an ordinary user keep their owner";
    return finding;
  }
  if (test.needs != Needs::nothing && !user_namespaces) {
    finding.detail = "not tried without user namespaces";
    finding.fix = kSameFix;
    return finding;
  }
  const Attempt attempt = try_in_child([&test, user] { return test.body(user); });
  finding.holds = attempt.has_value();
  finding.detail = detail_of(test, attempt);
  if (!attempt) finding.fix = fix_of(test, attempt.error());
  return finding;
}

Finding find_cgroup1() {
  Finding finding{.name = kCgroup1, .attempt = "a group is made, limited and removed"};
  const auto backend = make_cgroup1_backend();
  finding.holds = backend.has_value();
  finding.detail = backend ? "works: memory, processes and CPU time" : backend.error().message;
  if (!backend) {
    finding.fix = ::geteuid() == 0 ? "mount the memory, pids, cpu and cpuacct controllers writable; until "
                                     "then rlimits and a watchdog "
                                     "enforce limits"
                                   : "run as root where cgroup v1 is mounted; as an ordinary user rlimits "
                                     "and a watchdog enforce limits";
  }
  return finding;
}

Weight weight_of(const std::string& name) {
  for (const Test& test : kTests) {
    if (name == test.name) return test.weight;
  }
  return name == kCgroup1 ? Weight::stronger : Weight::informs;
}

}  // namespace

std::vector<Finding> examine(const HostOptions& options) {
  std::vector<Finding> findings;
  const SandboxUser user = user_of(options);
  for (const Test& test : kTests) {
    const bool user_namespaces = !findings.empty() && findings.front().holds;
    findings.push_back(find_out(test, user, user_namespaces));
  }
  findings.push_back(find_cgroup1());
  findings.push_back(find_cgroup2());
  return findings;
}

Tier tier_of(const std::vector<Finding>& findings) {
  Tier tier = findings.empty() ? Tier::none : Tier::full;
  for (const Finding& finding : findings) {
    if (finding.holds) continue;
    switch (weight_of(finding.name)) {
      case Weight::required:
        return Tier::none;
      case Weight::stronger:
        tier = Tier::namespaces;
        break;
      case Weight::informs:
        break;
    }
  }
  return tier;
}

Tier detect_tier(const HostOptions& options) {
  return tier_of(examine(options));
}

std::string what_to_change(const std::vector<Finding>& findings) {
  const bool makes_any = tier_of(findings) != Tier::none;
  std::string text;
  for (const Finding& finding : findings) {
    const Weight weight = weight_of(finding.name);
    const bool matters = weight == Weight::required || (makes_any && weight == Weight::stronger);
    const bool said =
        finding.fix.empty() || finding.fix == kSameFix || text.find(finding.fix) != std::string::npos;
    if (finding.holds || !matters || said) continue;
    text += fmt::format("{}{}: {} ({})", text.empty() ? "" : "; ", finding.name, finding.fix, finding.detail);
  }
  return text;
}

}  // namespace prims::sandbox

#include "launcher/lock_down.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "launcher/kernel.h"

namespace prims::launcher {
namespace {

Failure set_limit(const wire::Limit& limit) {
  const rlimit value{limit.soft, limit.hard};
  return check("setrlimit", setrlimit(static_cast<__rlimit_resource_t>(limit.resource), &value));
}

/// Root inside (there is none) would be nobody special, and no set of capabilities can grow again.
Failure lock_secure_bits() {
  constexpr unsigned long kBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                  SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                  SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  return check("lock secure bits", prctl(PR_SET_SECUREBITS, kBits));
}

Failure drop_bounding_set() {
  for (unsigned long capability = 0; capability < 64; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability) == 0) continue;
    if (errno == EINVAL) return {};  // past the last one this kernel knows
    return Failure{"drop bounding set", errno};
  }
  return {};
}

Failure clear_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  LAUNCHER_TRY(check("clear ambient set", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)));
  return check("capset", syscall(SYS_capset, &header, none));
}

constexpr std::uint64_t kRead = kernel::kExecute | kernel::kReadFile | kernel::kReadDir;

/// What ABI number `abi` knows of the file system rights.
std::uint64_t known_rights(int abi) {
  std::uint64_t rights = (std::uint64_t{1} << 13) - 1;
  if (abi >= 2) rights |= kernel::kRefer;
  if (abi >= 3) rights |= kernel::kTruncate;
  if (abi >= 5) rights |= kernel::kIoctlDev;
  return rights;
}

std::uint64_t rights_of(wire::Rights rights, std::uint64_t known) {
  switch (rights) {
    case wire::Rights::read:
      return kRead;
    case wire::Rights::write:
      return known & ~(kernel::kMakeChar | kernel::kMakeBlock | kernel::kIoctlDev);
    case wire::Rights::device:
      return known & (kRead | kernel::kWriteFile | kernel::kTruncate | kernel::kIoctlDev);
  }
  return 0;
}

Failure add_rule(int ruleset, const wire::Rule& rule, std::uint64_t known) {
  kernel::PathBeneath beneath;
  beneath.allowed = rights_of(rule.rights, known);
  beneath.parent = open(rule.path.data(), O_PATH | O_CLOEXEC);
  LAUNCHER_TRY(check("open for landlock", beneath.parent));
  const Failure failure = check("landlock rule", kernel::landlock_add_rule(ruleset, beneath));
  close(beneath.parent);
  return failure;
}

}  // namespace

Failure drop_privileges(const wire::Spec& spec, Whose whose) {
  LAUNCHER_TRY(spec.limits.each([whose](const wire::Limit& limit) {
    const bool spared = whose == Whose::template_program && limit.resource == RLIMIT_NPROC;
    return spared ? Failure{} : set_limit(limit);
  }));
  LAUNCHER_TRY(lock_secure_bits());
  LAUNCHER_TRY(drop_bounding_set());
  LAUNCHER_TRY(clear_capabilities());
  umask(022);
  return check("no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

Failure restrict_files(const wire::Spec& spec, SignalScope signals) {
  const int abi = kernel::landlock_create_ruleset(nullptr, 0, kernel::kRulesetVersion);
  if (abi < 1) return spec.has(wire::kLandlockRequired) ? Failure{"landlock", errno} : Failure{};
  kernel::RulesetAttributes attributes;
  attributes.handled_fs = known_rights(abi);
  std::size_t size = sizeof attributes.handled_fs;
  if (abi >= 6) {
    attributes.scoped = kernel::kScopeAbstractUnix;
    if (signals == SignalScope::own_domain) attributes.scoped |= kernel::kScopeSignal;
    size = sizeof attributes;
  }
  const int ruleset = kernel::landlock_create_ruleset(&attributes, size, 0);
  LAUNCHER_TRY(check("landlock ruleset", ruleset));
  const std::uint64_t known = attributes.handled_fs;
  LAUNCHER_TRY(
      spec.rules.each([ruleset, known](const wire::Rule& rule) { return add_rule(ruleset, rule, known); }));
  const Failure failure = check("landlock", kernel::landlock_restrict_self(ruleset));
  close(ruleset);
  return failure;
}

Failure filter_system_calls(std::string_view filter) {
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.size() / sizeof(sock_filter));
  program.filter = reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()));
  return check("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

}  // namespace prims::launcher

// Kernel interfaces that the headers of older distributions do not have, and system calls without a wrapper.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>

namespace prims::launcher::kernel {

// Landlock (linux/landlock.h), ABI 1 to 6.
inline constexpr std::uint64_t kExecute = 1U << 0;
inline constexpr std::uint64_t kWriteFile = 1U << 1;
inline constexpr std::uint64_t kReadFile = 1U << 2;
inline constexpr std::uint64_t kReadDir = 1U << 3;
inline constexpr std::uint64_t kMakeChar = 1U << 6;
inline constexpr std::uint64_t kMakeBlock = 1U << 11;
inline constexpr std::uint64_t kRefer = 1U << 13;     // ABI 2
inline constexpr std::uint64_t kTruncate = 1U << 14;  // ABI 3
inline constexpr std::uint64_t kIoctlDev = 1U << 15;  // ABI 5
inline constexpr std::uint64_t kScopeAbstractUnix = 1U << 0;
inline constexpr std::uint64_t kScopeSignal = 1U << 1;

struct RulesetAttributes {
  std::uint64_t handled_fs = 0;
  std::uint64_t handled_net = 0;  // ABI 4
  std::uint64_t scoped = 0;       // ABI 6
};
struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};
inline constexpr std::uint32_t kRulesetVersion = 1;
inline constexpr int kRulePathBeneath = 1;

inline int landlock_create_ruleset(const RulesetAttributes* attributes, std::size_t size,
                                   std::uint32_t flags) {
  return static_cast<int>(syscall(SYS_landlock_create_ruleset, attributes, size, flags));
}
inline int landlock_add_rule(int ruleset, const PathBeneath& rule) {
  return static_cast<int>(syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &rule, 0));
}
inline int landlock_restrict_self(int ruleset) {
  return static_cast<int>(syscall(SYS_landlock_restrict_self, ruleset, 0));
}

/// fork() by clone3. Returns as fork does; flags and signal as in man 2 clone.
inline pid_t clone3(std::uint64_t flags, int* pidfd) {
  struct {
    std::uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
  } arguments{};
  arguments.flags = flags;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(pidfd);
  arguments.exit_signal = 17;  // SIGCHLD
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
}

inline constexpr std::uint64_t kCloneClearSignalHandlers = 0x1'0000'0000ULL;

inline int close_range(unsigned first, unsigned last, int flags) {
  return static_cast<int>(syscall(SYS_close_range, first, last, flags));
}
inline constexpr int kCloseRangeCloexec = 4;

// The headers of glibc 2.36 declare these without extern "C".
inline int pidfd_open(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}
inline int pidfd_send_signal(int pidfd, int number) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0));
}

inline constexpr int kLastSignal = 64;

/// Default action. Directly, because the C library keeps two real-time signals to itself: its sigaction()
/// refuses them, while its posix_spawn() ignores them in the new program, which hands that on.
inline int default_action(int number) {
  const std::uint64_t nothing[4] = {};  // handler, flags, restorer, mask
  constexpr std::size_t kMaskSize = 8;
  return static_cast<int>(syscall(SYS_rt_sigaction, number, nothing, nullptr, kMaskSize));
}

inline int pivot_root(const char* new_root, const char* put_old) {
  return static_cast<int>(syscall(SYS_pivot_root, new_root, put_old));
}

/// After vfork() parent and child share memory, which the compiler does not know: what the child writes
/// behind `object` is written before this, and read again after it.
inline void shared_with_vfork(void* object) {
  __asm__ volatile("" : : "r"(object) : "memory");
}

}  // namespace prims::launcher::kernel

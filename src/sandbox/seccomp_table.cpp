#include "sandbox/seccomp_table.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

namespace prims::sandbox {
namespace {

constexpr Verdict kAllow{0};
constexpr Verdict kRefuse{EPERM};
constexpr Verdict kAbsent{ENOSYS};

constexpr Condition is(unsigned argument, std::uint32_t value, std::uint32_t mask = 0xffffffff) {
  return {argument, Test::equals, mask, value};
}
constexpr Condition has_any(unsigned argument, std::uint32_t bits) {
  return {argument, Test::any_bit, bits, 0};
}

// clone: threads and processes, no namespaces.
constexpr std::uint32_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr Clause kClone[] = {{kRefuse, {has_any(0, kNewNamespaces)}}};

// socket(family, type, protocol): UNIX; INET and INET6 as plain TCP and UDP; NETLINK_ROUTE, which lists
// interfaces.
constexpr Condition kInet =
    is(0, AF_INET, ~std::uint32_t{AF_INET ^ AF_INET6});  // both: they differ in one bit
constexpr Condition kStream = is(1, SOCK_STREAM, 0xf);   // the rest are SOCK_NONBLOCK, ...
constexpr Condition kDatagram = is(1, SOCK_DGRAM, 0xf);
constexpr Condition kRaw = is(1, SOCK_RAW, 0xf);
constexpr Verdict kNoFamily{EAFNOSUPPORT};
constexpr Verdict kNoProtocol{EPROTONOSUPPORT};
constexpr Clause kSocket[] = {
    {kAllow, {is(0, AF_UNIX)}},
    {kAllow, {kInet, kStream, is(2, 0)}},
    {kAllow, {kInet, kStream, is(2, IPPROTO_TCP)}},
    {kAllow, {kInet, kDatagram, is(2, 0)}},
    {kAllow, {kInet, kDatagram, is(2, IPPROTO_UDP)}},
    {kRefuse, {kInet, kRaw}},
    {kNoProtocol, {kInet}},
    {kAllow, {is(0, AF_NETLINK), is(2, NETLINK_ROUTE)}},
    {kNoProtocol, {is(0, AF_NETLINK)}},
};
constexpr Clause kSocketPair[] = {{kAllow, {is(0, AF_UNIX)}}};

// setsockopt: nothing that loads code into the network stack, turns TCP or UDP into another protocol, or pins
// pages. Buffers keep their first size, so that the number of sockets bounds their memory; the kernel, too,
// takes any size without a word and gives what it may.
constexpr Verdict kNothing{Verdict::kNothing};
constexpr Clause kSetSockOpt[] = {
    {kRefuse, {is(1, SOL_SOCKET), is(2, SO_ATTACH_FILTER)}},
    {kRefuse, {is(1, SOL_SOCKET), is(2, SO_ATTACH_BPF)}},
    {kRefuse, {is(1, SOL_SOCKET), is(2, SO_ATTACH_REUSEPORT_CBPF)}},
    {kRefuse, {is(1, SOL_SOCKET), is(2, SO_ATTACH_REUSEPORT_EBPF)}},
    {Verdict{EOPNOTSUPP}, {is(1, SOL_SOCKET), is(2, SO_ZEROCOPY)}},
    {kNothing, {is(1, SOL_SOCKET), is(2, SO_SNDBUF)}},
    {kNothing, {is(1, SOL_SOCKET), is(2, SO_RCVBUF)}},
    {Verdict{ENOPROTOOPT}, {is(1, SOL_TCP), is(2, TCP_ULP)}},
    {Verdict{ENOPROTOOPT}, {is(1, SOL_UDP), is(2, UDP_ENCAP)}},
};

// ioctl: no typing into a terminal that a person looks at.
constexpr Clause kIoctl[] = {{kRefuse, {is(1, TIOCSTI)}}, {kRefuse, {is(1, TIOCLINUX)}}};

// fcntl: directory notifications and leases on files that sandboxes share would be a channel between them.
constexpr Clause kFcntl[] = {{kRefuse, {is(1, F_NOTIFY)}}, {kRefuse, {is(1, F_SETLEASE)}}};

// futex: no operation that moves a waiter to a priority-inheriting lock.
constexpr std::uint32_t kFutexCommand = ~std::uint32_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
constexpr Clause kFutex[] = {
    {kAbsent, {is(1, FUTEX_WAIT_REQUEUE_PI, kFutexCommand)}},
    {kAbsent, {is(1, FUTEX_CMP_REQUEUE_PI, kFutexCommand)}},
};

constexpr Clause kPrctl[] = {
    {kRefuse, {is(0, PR_SET_MM)}},
    {kRefuse, {is(0, PR_SCHED_CORE)}},
    {kRefuse, {is(0, PR_SET_SYSCALL_USER_DISPATCH)}},
};

// personality: asking, and the ordinary one.
constexpr Clause kPersonality[] = {{kAllow, {is(0, PER_LINUX)}}, {kAllow, {is(0, 0xffffffff)}}};

// mknod: files, named pipes and sockets, no devices.
constexpr Clause kMknod[] = {
    {kAllow, {is(1, 0, S_IFMT)}},
    {kAllow, {is(1, S_IFREG, S_IFMT)}},
    {kAllow, {is(1, S_IFIFO, S_IFMT)}},
    {kAllow, {is(1, S_IFSOCK, S_IFMT)}},
};
constexpr Clause kMknodAt[] = {
    {kAllow, {is(2, 0, S_IFMT)}},
    {kAllow, {is(2, S_IFREG, S_IFMT)}},
    {kAllow, {is(2, S_IFIFO, S_IFMT)}},
    {kAllow, {is(2, S_IFSOCK, S_IFMT)}},
};

constexpr Rule kConditional[] = {
    {"clone", kAllow, kClone},
    {"socket", kNoFamily, kSocket},
    {"socketpair", kNoFamily, kSocketPair},
    {"setsockopt", kAllow, kSetSockOpt},
    {"ioctl", kAllow, kIoctl},
    {"fcntl", kAllow, kFcntl},
    {"futex", kAllow, kFutex},
    {"prctl", kAllow, kPrctl},
    {"personality", kRefuse, kPersonality},
    {"mknod", kRefuse, kMknod},
    {"mknodat", kRefuse, kMknodAt},
};

constexpr Group kGroups[] = {
    {kAllow, "files",
     "read write open openat openat2 creat close close_range lseek pread64 pwrite64 readv writev preadv "
     "pwritev preadv2 pwritev2 stat fstat lstat newfstatat statx access faccessat faccessat2 dup dup2 "
     "dup3 pipe pipe2 flock fsync fdatasync sync syncfs sync_file_range truncate ftruncate fallocate "
     "fadvise64 readahead getdents getdents64 getcwd chdir fchdir rename renameat renameat2 mkdir "
     "mkdirat rmdir link linkat unlink unlinkat symlink symlinkat readlink readlinkat chmod fchmod "
     "fchmodat chown fchown lchown fchownat umask utime utimes futimesat utimensat statfs fstatfs "
     "sendfile copy_file_range splice tee setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr "
     "listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr"},
    {kAllow, "waiting",
     "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
     "epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime "
     "pause nanosleep clock_nanosleep restart_syscall"},
    {kAllow, "memory",
     "mmap mprotect munmap mremap brk msync mincore madvise mlock mlock2 munlock mlockall munlockall "
     "membarrier pkey_alloc pkey_free pkey_mprotect"},
    {kAllow, "processes and threads",
     "fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid getpgrp "
     "setpgid getsid setsid getpriority setpriority ioprio_get ioprio_set sched_yield sched_getaffinity "
     "sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler "
     "sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval "
     "getcpu set_tid_address set_robust_list get_robust_list futex_waitv rseq arch_prctl set_thread_area "
     "get_thread_area getrlimit setrlimit prlimit64 getrusage times pidfd_open pidfd_send_signal seccomp "
     "landlock_create_ruleset landlock_add_rule landlock_restrict_self"},
    {kAllow, "signals",
     "kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo "
     "rt_tgsigqueueinfo rt_sigsuspend rt_sigreturn sigaltstack alarm getitimer setitimer timer_create "
     "timer_settime timer_gettime timer_getoverrun timer_delete"},
    {kAllow, "identity, where the kernel answers as it does for any user without capabilities",
     "getuid getgid geteuid getegid getresuid getresgid getgroups setuid setgid setreuid setregid "
     "setresuid setresgid setfsuid setfsgid setgroups capget capset"},
    {kAllow, "time and system", "time gettimeofday clock_gettime clock_getres uname sysinfo getrandom"},
    {kAllow, "sockets, once made",
     "connect accept accept4 bind listen getsockname getpeername sendto recvfrom sendmsg recvmsg "
     "sendmmsg recvmmsg shutdown getsockopt"},
    {kAllow, "System V and POSIX objects of the sandbox's own ipc namespace",
     "shmat shmctl shmdt semget semop semtimedop semctl msgsnd msgrcv msgctl mq_open mq_unlink "
     "mq_timedsend mq_timedreceive mq_notify mq_getsetattr"},
    {kAllow, "memory that no mapping shows", "memfd_create shmget msgget", true},
    {kAbsent, "its flags lie behind a pointer, and glibc falls back to clone only on ENOSYS", "clone3"},
    {kAbsent, "watches of shared files are a channel between sandboxes",
     "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"},
    {kAbsent, "all processes of a machine share one bound of asynchronous I/O contexts",
     "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents"},
    {kRefuse, "other processes",
     "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp"},
    {kRefuse, "namespaces, mounts, roots",
     "unshare setns mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick "
     "mount_setattr name_to_handle_at open_by_handle_at quotactl quotactl_fd swapon swapoff "
     "fanotify_init fanotify_mark"},
    {kRefuse, "kernel objects without a namespace, and kernel machinery with a long record",
     "add_key request_key keyctl bpf perf_event_open userfaultfd io_uring_setup io_uring_enter "
     "io_uring_register memfd_secret vmsplice remap_file_pages modify_ldt mbind set_mempolicy "
     "get_mempolicy set_mempolicy_home_node move_pages migrate_pages lookup_dcookie"},
    {kRefuse, "the machine",
     "reboot kexec_load kexec_file_load init_module finit_module delete_module syslog acct vhangup iopl "
     "ioperm sethostname setdomainname settimeofday clock_settime adjtimex clock_adjtime"},
};

constexpr std::string_view kJoining = "setns";

constexpr std::string_view kInit =
    "poll ppoll recvmsg sendmsg read write close open openat getdents64 newfstatat fstat wait4 waitid kill "
    "getrusage exit exit_group rt_sigreturn restart_syscall";

}  // namespace

std::span<const Group> call_groups() {
  return kGroups;
}
std::span<const Rule> conditional_calls() {
  return kConditional;
}
std::string_view joining_calls() {
  return kJoining;
}
std::string_view init_calls() {
  return kInit;
}

}  // namespace prims::sandbox

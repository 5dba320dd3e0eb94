#include "sandbox/seccomp_policy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

namespace prims::sandbox {
namespace {

using Bytecode = std::vector<std::uint8_t>;

bool install(const Bytecode& bytes) {
  auto* filter = reinterpret_cast<sock_filter*>(const_cast<std::uint8_t*>(bytes.data()));
  const sock_fprog program{static_cast<unsigned short>(bytes.size() / sizeof(sock_filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/// A filter below ours that answers every call but the ones the child needs. An allowed call then fails with
/// this errno instead of running, and a refused one with ours: of two errors the kernel takes the newest
/// filter's.
constexpr int kWouldRun = EXDEV;

bool install_marker() {
  std::array code{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 2, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | kWouldRun),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{code.size(), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

struct Call {
  long number = 0;
  std::array<std::uint64_t, 3> arguments{};
};

/// The errno of each call under the filters, installed in this order, kWouldRun for what they let pass;
/// nothing runs.
std::vector<int> answers(const std::vector<Bytecode>& filters, const std::vector<Call>& calls) {
  const std::size_t size = calls.size() * sizeof(int);
  auto* shared =
      static_cast<int*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = ::fork();
  if (child == 0) {
    if (!install_marker()) ::_exit(1);
    for (const Bytecode& filter : filters) {
      auto* raw = reinterpret_cast<sock_filter*>(const_cast<std::uint8_t*>(filter.data()));
      const sock_fprog program{static_cast<unsigned short>(filter.size() / sizeof(sock_filter)), raw};
      if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) ::_exit(2);
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto& [number, a] = calls[i];
      errno = 0;
      const bool runs = number == SYS_seccomp || number == SYS_exit_group;  // let pass by both filters
      if (!runs) ::syscall(number, a[0], a[1], a[2], 0, 0, 0);
      shared[i] = runs ? kWouldRun : errno;
    }
    ::syscall(SYS_exit_group, 0);  // _exit() makes other calls first in builds with a sanitizer
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::vector<int> result(shared, shared + calls.size());
  ::munmap(shared, size);
  return result;
}

int answer(const Bytecode& filter, long number, std::array<std::uint64_t, 3> arguments = {}) {
  return answers({filter}, {{number, arguments}}).front();
}

/// The wait status of a child that does `body` under the filter.
int status_under(const Bytecode& filter, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!install(filter)) ::_exit(99);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

std::string name_of(int error) {
  if (error == kWouldRun) return "allow";
  if (error == EPERM) return "EPERM";
  if (error == ENOSYS) return "ENOSYS";
  if (error == EAFNOSUPPORT) return "EAFNOSUPPORT";
  return fmt::format("errno {}", error);
}

class SeccompPolicy : public ::testing::Test {
 protected:
  const Bytecode filter = compile_seccomp().value();
};

#if defined(__x86_64__)

/// Newer kernels show this call to no filter; it ends whoever makes it without a probe.
constexpr long kUretprobe = 335;

/// The whole policy: the table, and what the kernel answers to every number with all arguments zero.
std::string golden(const std::vector<Bytecode>& filters) {
  std::string text = describe_seccomp() + "# numbers, all arguments 0\n";
  std::vector<Call> calls;
  for (long number = 0; number <= 600; ++number) {
    if (number != kUretprobe) calls.push_back({number, {}});
  }
  const std::vector<int> errors = answers(filters, calls);
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= errors.size(); ++i) {
    if (i < errors.size() && errors[i] == errors[begin]) continue;
    text +=
        fmt::format("{:>3} - {:<18}{}\n", calls[begin].number, calls[i - 1].number, name_of(errors[begin]));
    begin = i;
  }
  return text;
}

TEST_F(SeccompPolicy, MatchesTheGoldenFileForEveryNumber) {
  const char* path = PRIMS_SOURCE_DIR "/tests/golden/seccomp_x86_64.txt";
  const std::string now = golden({filter});
  if (std::getenv("PRIMS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << now;
  std::ifstream file(path);
  std::stringstream frozen;
  frozen << file.rdbuf();
  EXPECT_EQ(now, frozen.str()) << "If this change of policy is meant: PRIMS_UPDATE_GOLDEN=1 sandbox_test";
}

TEST_F(SeccompPolicy, OfAForkIsThatOfAGuest) {
  for (const MemoryFiles files : {MemoryFiles::allowed, MemoryFiles::refused}) {
    const Bytecode inherited = compile_seccomp(files, Role::template_program).value();
    const Bytecode added = compile_seccomp(files, Role::fork).value();
    const Bytecode guest = compile_seccomp(files).value();
    EXPECT_EQ(answer(inherited, SYS_setns), kWouldRun);
    EXPECT_EQ(golden({inherited, added}), golden({guest}));
  }
}

TEST_F(SeccompPolicy, OfInitOfAForkAllowsLittle) {
  const Bytecode init = compile_seccomp(MemoryFiles::allowed, Role::init_of_fork).value();
  std::vector<Call> calls;
  for (long number = 0; number <= 600; ++number) {
    const bool marked = number == SYS_seccomp || number == SYS_exit_group || number == kUretprobe;
    if (!marked) calls.push_back({number, {}});
  }
  const std::vector<int> errors = answers({init}, calls);
  std::vector<long> allowed;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (errors[i] == kWouldRun) allowed.push_back(calls[i].number);
  }
  EXPECT_THAT(allowed, ::testing::UnorderedElementsAre(SYS_poll, SYS_ppoll, SYS_recvmsg, SYS_sendmsg,
                                                       SYS_read, SYS_write, SYS_close, SYS_open, SYS_openat,
                                                       SYS_getdents64, SYS_newfstatat, SYS_fstat, SYS_wait4,
                                                       SYS_waitid, SYS_kill, SYS_getrusage, SYS_exit,
                                                       SYS_rt_sigreturn, SYS_restart_syscall));
}

TEST_F(SeccompPolicy, KillsCallsOfThe32BitAbi) {
  const int status = status_under(filter, [] {
    long result = 20;                                             // getpid of i386
    asm volatile("int $0x80" : "+a"(result) : : "memory", "cc");  // NOLINT(hicpp-no-assembler)
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
}

TEST_F(SeccompPolicy, KillsCallsOfTheX32Abi) {
  for (const long number : {0x40000000L, 0x40000000L + 39, 0x40000000L + 512, 0x7fffffffL}) {
    const int status = status_under(filter, [number] { return ::syscall(number) >= 0 ? 1 : 0; });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << number << ' ' << status;
  }
}

#endif

TEST_F(SeccompPolicy, AnswersUnknownCallsAsAnOlderKernel) {
  for (const long number : {387L, 601L, 9999L, -1L}) EXPECT_EQ(answer(filter, number), ENOSYS) << number;
  EXPECT_EQ(answer(filter, SYS_clone3), ENOSYS);
}

TEST_F(SeccompPolicy, LetsThreadsBeMadeButNoNamespaces) {
  EXPECT_EQ(answer(filter, SYS_clone, {SIGCHLD}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_clone, {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD}),
            kWouldRun);
  for (const std::uint64_t flag :
       std::initializer_list<std::uint64_t>{CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                            CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
    EXPECT_EQ(answer(filter, SYS_clone, {flag | SIGCHLD}), EPERM) << flag;
    EXPECT_EQ(answer(filter, SYS_unshare, {flag}), EPERM) << flag;
  }
}

TEST_F(SeccompPolicy, OpensUnixTcpUdpAndRouteSocketsOnly) {
  for (int family = 0; family < 64; ++family) {
    const int error = answer(filter, SYS_socket, {static_cast<std::uint64_t>(family), SOCK_STREAM, 0});
    const bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    EXPECT_EQ(error, known ? kWouldRun : EAFNOSUPPORT) << family;
  }
  for (const std::uint64_t family : {std::uint64_t{AF_INET}, std::uint64_t{AF_INET6}}) {
    EXPECT_EQ(answer(filter, SYS_socket, {family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP}), kWouldRun);
    EXPECT_EQ(answer(filter, SYS_socket, {family, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP}), kWouldRun);
    EXPECT_EQ(answer(filter, SYS_socket, {family, SOCK_RAW, IPPROTO_ICMP}), EPERM);
    EXPECT_EQ(answer(filter, SYS_socket, {family, SOCK_DGRAM, IPPROTO_ICMP}), EPROTONOSUPPORT);
    EXPECT_EQ(answer(filter, SYS_socket, {family, SOCK_STREAM, 262 /* MPTCP */}), EPROTONOSUPPORT);
    EXPECT_EQ(answer(filter, SYS_socket, {family, SOCK_STREAM, IPPROTO_SCTP}), EPROTONOSUPPORT);
    EXPECT_EQ(answer(filter, SYS_socket, {family, 6 /* DCCP */, IPPROTO_DCCP}), EPROTONOSUPPORT);
  }
  for (std::uint64_t protocol = 1; protocol < 32; ++protocol) {
    EXPECT_EQ(answer(filter, SYS_socket, {AF_NETLINK, SOCK_RAW, protocol}), EPROTONOSUPPORT) << protocol;
  }
  EXPECT_EQ(answer(filter, SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_socketpair, {AF_TIPC, SOCK_STREAM, 0}), EAFNOSUPPORT);
  EXPECT_EQ(answer(filter, SYS_setsockopt, {3, SOL_TCP, TCP_ULP}), ENOPROTOOPT);
  EXPECT_EQ(answer(filter, SYS_setsockopt, {3, SOL_TCP, TCP_NODELAY}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_setsockopt, {3, SOL_SOCKET, SO_SNDBUF}), 0);
  EXPECT_EQ(answer(filter, SYS_setsockopt, {3, SOL_SOCKET, SO_REUSEADDR}), kWouldRun);
}

TEST_F(SeccompPolicy, ComparesTheLowHalfOfArguments) {
  constexpr std::uint64_t kHigh = std::uint64_t{1} << 32;
  EXPECT_EQ(answer(filter, SYS_ioctl, {0, TIOCSTI}), EPERM);
  EXPECT_EQ(answer(filter, SYS_ioctl, {0, TIOCSTI | kHigh}), EPERM);
  EXPECT_EQ(answer(filter, SYS_ioctl, {0, 0x541c | kHigh}), EPERM);
  EXPECT_EQ(answer(filter, SYS_ioctl, {0, TIOCGWINSZ}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_socket, {38 | kHigh, SOCK_SEQPACKET, 0}), EAFNOSUPPORT);
  EXPECT_EQ(answer(filter, SYS_clone, {CLONE_NEWUSER | kHigh}), EPERM);
}

TEST_F(SeccompPolicy, LooksAtOperationsOfSharedCalls) {
  EXPECT_EQ(answer(filter, SYS_prctl, {PR_SET_MM}), EPERM);
  EXPECT_EQ(answer(filter, SYS_prctl, {PR_SET_NAME}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_personality, {0}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_personality, {0xffffffff}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_personality, {0x40000}), EPERM);
  EXPECT_EQ(answer(filter, SYS_futex, {0, FUTEX_WAIT_PRIVATE}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_futex, {0, FUTEX_WAIT_REQUEUE_PI_PRIVATE}), ENOSYS);
  EXPECT_EQ(answer(filter, SYS_futex, {0, FUTEX_CMP_REQUEUE_PI}), ENOSYS);
  EXPECT_EQ(answer(filter, SYS_mknodat, {0, 0, S_IFIFO | 0600}), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_mknodat, {0, 0, S_IFCHR | 0600}), EPERM);
  EXPECT_EQ(answer(filter, SYS_fcntl, {0, 1026 /* F_NOTIFY */}), EPERM);
  EXPECT_EQ(answer(filter, SYS_fcntl, {0, F_SETFL}), kWouldRun);
}

TEST_F(SeccompPolicy, RefusesMemoryFilesWhereNothingCountsThem) {
  const Bytecode strict = compile_seccomp(MemoryFiles::refused).value();
  EXPECT_EQ(answer(filter, SYS_memfd_create), kWouldRun);
  EXPECT_EQ(answer(filter, SYS_shmget), kWouldRun);
  EXPECT_EQ(answer(strict, SYS_memfd_create), ENOSYS);
  EXPECT_EQ(answer(strict, SYS_shmget), ENOSYS);
  EXPECT_EQ(answer(strict, SYS_mmap), kWouldRun);
  EXPECT_EQ(answer(filter, 447 /* memfd_secret */), EPERM);
}

TEST(SeccompTable, HoldsNoNameThatDoesNotExist) {
  EXPECT_THAT(unresolved_calls(Architecture::x86_64), ::testing::IsEmpty());
}

TEST(SeccompTable, CompilesForAarch64WithoutTheOldCallsOfX86) {
  const std::vector<std::string> only_x86{"access",
                                          "alarm",
                                          "arch_prctl",
                                          "chmod",
                                          "chown",
                                          "creat",
                                          "dup2",
                                          "epoll_create",
                                          "epoll_wait",
                                          "eventfd",
                                          "fork",
                                          "futimesat",
                                          "get_thread_area",
                                          "getdents",
                                          "getpgrp",
                                          "inotify_init",
                                          "ioperm",
                                          "iopl",
                                          "lchown",
                                          "link",
                                          "lstat",
                                          "mkdir",
                                          "mknod",
                                          "modify_ldt",
                                          "open",
                                          "pause",
                                          "pipe",
                                          "poll",
                                          "readlink",
                                          "rename",
                                          "rmdir",
                                          "select",
                                          "set_thread_area",
                                          "signalfd",
                                          "stat",
                                          "symlink",
                                          "time",
                                          "unlink",
                                          "utime",
                                          "utimes",
                                          "vfork"};
  EXPECT_EQ(unresolved_calls(Architecture::aarch64), only_x86);
  EXPECT_TRUE(compile_seccomp(MemoryFiles::allowed, Role::guest, Architecture::aarch64).has_value());
}

/// The parts of ordinary Python that lean on system calls most.
constexpr const char* kOrdinaryPython = R"(
import asyncio, ctypes, fcntl, mmap, multiprocessing, os, select, signal, socket, ssl, subprocess, sys, tempfile
import threading, time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import shared_memory

def square(x): return x * x

async def loopback():
    async def echo(reader, writer):
        writer.write(await reader.readline()); await writer.drain(); writer.close()
    server = await asyncio.start_server(echo, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b'x\n')
    assert await reader.readline() == b'x\n'
    process = await asyncio.create_subprocess_exec('/bin/echo', 'hi', stdout=subprocess.PIPE)
    assert (await process.communicate())[0] == b'hi\n'

if __name__ == '__main__':
    assert list(ThreadPoolExecutor(4).map(square, [1, 2])) == [1, 4]
    for method in ('fork', 'spawn'):
        with multiprocessing.get_context(method).Pool(2) as pool: assert pool.map(square, [3]) == [9]
    lock = multiprocessing.Lock(); lock.acquire(); lock.release()
    memory = shared_memory.SharedMemory(create=True, size=4096); memory.buf[0] = 1; memory.close(); memory.unlink()
    asyncio.run(loopback())
    assert subprocess.check_output('printf abc | tr a-c A-C', shell=True) == b'ABC'
    m = mmap.mmap(-1, 4096); m[0] = 1
    with tempfile.TemporaryFile() as f: fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_UN)
    poll = select.epoll(); r, w = os.pipe(); poll.register(r); os.write(w, b'x'); assert poll.poll(1)
    assert ctypes.CDLL(None).getpid() == os.getpid()
    assert socket.if_nameindex()
    os.mkfifo(tempfile.mktemp(dir=tempfile.mkdtemp()))
    ssl.create_default_context()
    caught = []; signal.signal(signal.SIGALRM, lambda *a: caught.append(1)); signal.setitimer(signal.ITIMER_REAL, .01)
    signal.pause() if not caught else None
    assert caught
    import pty; master, slave = pty.openpty(); os.write(slave, b'x'); assert os.read(master, 1) == b'x'
)";

TEST_F(SeccompPolicy, KeepsOrdinaryPythonWorking) {
  for (const MemoryFiles memory_files : {MemoryFiles::allowed, MemoryFiles::refused}) {
    const Bytecode chosen = compile_seccomp(memory_files).value();
    char script[] = "/tmp/prims-seccomp-XXXXXX";
    const int file = ::mkstemp(script);
    ASSERT_EQ(::write(file, kOrdinaryPython, std::strlen(kOrdinaryPython)),
              static_cast<ssize_t>(std::strlen(kOrdinaryPython)));
    ::close(file);
    const int status = status_under(chosen, [&script] {
      ::unsetenv("PYTHONUNBUFFERED");
      ::unsetenv("PYTHONDONTWRITEBYTECODE");
      ::execl("/usr/bin/python3", "/usr/bin/python3", "-I", script, nullptr);
      return 98;
    });
    ::unlink(script);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

}  // namespace
}  // namespace prims::sandbox

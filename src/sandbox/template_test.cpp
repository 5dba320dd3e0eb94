// Templates and the sandboxes of their forks. The template program is Python with the module `forking`.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "io/pipe.h"
#include "io/stream.h"
#include "io/wait.h"
#include "launcher/kernel.h"
#include "sandbox/test_support.h"

namespace prims::sandbox::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Every fork runs what it reads from standard input.
constexpr const char* kTemplate = R"(
import sys
sys.path.insert(0, '/opt/forking')
import forking
forking.rest()
forking.wait(3, 4)
exec(sys.stdin.read())
)";

void add_module(Root& root) {
  root.directories.emplace_back("/opt/forking");  // named, so that Python may list it
  root.binds.push_back({PRIMS_FORKING_FILE, "/opt/forking/forking.abi3.so"});
}

TemplateSpec template_spec(std::string program = kTemplate) {
  TemplateSpec spec;
  spec.prepare.root = minimal_root();
  add_module(spec.prepare.root);
  spec.start.standard_error = UniqueFd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  spec.start.argv = {"/usr/bin/python3", "-I", "-c", std::move(program)};
  spec.start.environment = {"PATH=/usr/bin:/bin", "HOME=/sandbox/home", "LANG=C.UTF-8"};
  return spec;
}

/// A fork that waits for its code.
struct Fork {
  std::unique_ptr<Sandbox> sandbox;
  io::Stream input;
  io::Stream output;
};

class TemplateTest : public SandboxTest {
 protected:
  std::unique_ptr<Template> make(TemplateSpec spec = template_spec()) {
    auto made = loop_.run_until_done(host().make_template(std::move(spec)));
    if (made) return *std::move(made);
    ADD_FAILURE() << made.error().message;
    return nullptr;
  }

  static io::Task<Result<Fork>> fork_task(Template* from) {
    io::Pipe input = io::make_pipe().value();
    io::Pipe output = io::make_pipe().value();
    ForkSpec spec;
    spec.standard_input = std::move(input.read);
    spec.standard_error = UniqueFd(::fcntl(output.write.get(), F_DUPFD_CLOEXEC, 0));
    spec.standard_output = std::move(output.write);
    auto sandbox = co_await from->fork(std::move(spec));
    if (!sandbox) co_return std::unexpected(std::move(sandbox).error());
    co_return Fork{*std::move(sandbox), io::Stream(std::move(input.write)),
                   io::Stream(std::move(output.read))};
  }

  static io::Task<Result<Ran>> finish_task(Fork fork, std::string code, Milliseconds limit) {
    Ran ran;
    auto written = co_await fork.input.write_all(code, Deadline::after(limit));
    PRIMS_CO_RETURN_ON_ERROR(std::move(written));
    fork.input.close();
    const bool ended = co_await fork.sandbox->ended_by(Deadline::after(limit));
    if (!ended) fork.sandbox->kill(TimedOut{limit});
    ran.outcome = co_await fork.sandbox->finish();
    std::string buffer(65536, '\0');
    for (;;) {
      auto got = co_await fork.output.read_some(buffer, Deadline::after(Milliseconds(10'000)));
      if (!got || *got == 0) break;
      ran.out.append(buffer, 0, *got);
    }
    ran.usage = fork.sandbox->usage();
    co_return ran;
  }

  Fork fork(Template& from) {
    auto made = loop_.run_until_done(fork_task(&from));
    if (made) return *std::move(made);
    ADD_FAILURE() << made.error().message;
    return {};
  }

  Ran finish(Fork fork, std::string code, Milliseconds limit = Milliseconds(20'000)) {
    auto ran = loop_.run_until_done(finish_task(std::move(fork), std::move(code), limit));
    if (ran) return *std::move(ran);
    ADD_FAILURE() << ran.error().message;
    return {};
  }

  Ran run_fork(Template& from, std::string code) { return finish(fork(from), std::move(code)); }
};

/// What a program sees of its walls, as text.
constexpr const char* kWalls = R"(
import os, resource, sys
for line in open('/proc/self/status'):
    if line.startswith(('Cap', 'NoNewPrivs', 'Seccomp:', 'Groups', 'Uid', 'Gid', 'SigBlk', 'SigIgn', 'SigCgt')): print(line, end='')
print(os.getuid(), os.getgid(), os.getgroups(), os.getcwd() and 1, os.getsid(0) == os.getpid(), os.umask(0))
print(open('/proc/1/comm').read(), open('/proc/self/cgroup').read(), os.uname().nodename)
print(sorted(os.listdir('/')), sorted(os.listdir('/dev')), os.listdir('/tmp'), os.listdir('/sandbox/run'))
print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit())[0], os.listdir('/proc/self/fd'))
print([resource.getrlimit(limit) for limit in range(16)])
print(sorted(dict(line.split()[4:6] for line in open('/proc/self/mountinfo')).items()))
for path in ('/x', '/etc/x', '/usr/x', '/dev/x', '/proc/self/comm', '/proc/1/environ', '/proc/1/maps', '/proc/interrupts', '/proc/kcore', '/proc/sys/kernel/hostname'):
    try:
        print(path, repr(open(path, 'rb').read(1)))
    except OSError as error:
        print(path, error.errno)
    try:
        open(path, 'w')
    except OSError as error:
        print(path, error.errno)
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, arguments in (('setns', (3, 0)), ('unshare', (0x10000000,)), ('unshare', (0x02000000,)), ('mount', (0, 0, 0, 0, 0)), ('chroot', (b'/',))):
    ctypes.set_errno(0)
    print(name, getattr(libc, name)(*arguments), ctypes.get_errno())
)";

TEST_F(TemplateTest, ItsForksAreWalledInLikeAnyProgram) {
  const auto from = make();
  ASSERT_TRUE(from);
  const Ran forked = run_fork(*from, kWalls);
  Program program = python(std::string("import sys\nsys.path.insert(0, '/opt/forking')\n") + kWalls);
  add_module(program.prepare.root);
  const Ran plain = run(std::move(program));
  EXPECT_EQ(forked.exit_code(), 0) << forked.out;
  EXPECT_EQ(forked.out, plain.out);
}

constexpr const char* kNamespaces = R"(
import os
for name in ('user', 'pid', 'mnt', 'net', 'ipc', 'uts', 'cgroup'): print(name, os.readlink('/proc/self/ns/' + name))
)";

TEST_F(TemplateTest, EveryForkHasNamespacesOfItsOwn) {
  const auto from = make();
  ASSERT_TRUE(from);
  Fork one = fork(*from);
  Fork two = fork(*from);
  const Ran first = finish(std::move(one), kNamespaces);
  const Ran second = finish(std::move(two), kNamespaces);
  std::istringstream lines(first.out);
  int count = 0;
  for (std::string name, inode; lines >> name >> inode; ++count)
    EXPECT_THAT(second.out, Not(HasSubstr(inode)));
  EXPECT_EQ(count, 7) << first.out;
}

TEST_F(TemplateTest, NothingOfOneForkReachesTheNext) {
  const auto from = make();
  ASSERT_TRUE(from);
  EXPECT_EQ(run_fork(*from, R"(
import sys, os, socket
sys.seen = True
for path in ('/tmp/a', '/dev/shm/a', '/sandbox/home/a', '/sandbox/run/a'): open(path, 'w').close()
socket.socket().bind(('127.0.0.1', 4000))
)")
                .out,
            "");
  EXPECT_EQ(run_fork(*from, R"(
import sys, os, socket
socket.socket().bind(('127.0.0.1', 4000))
print(hasattr(sys, 'seen'), [os.listdir(p) for p in ('/tmp', '/dev/shm', '/sandbox/home', '/sandbox/run')])
)")
                .out,
            "False [[], [], [], []]\n");
}

TEST_F(TemplateTest, KeepsWhatTheProgramHadReady) {
  const auto from = make(template_spec(std::string("import json, os; ready = os.getpid()\n") + kTemplate));
  ASSERT_TRUE(from);
  EXPECT_EQ(run_fork(*from, "print(ready > 0, os.getpid(), 'json' in sys.modules)").out, "True 3 True\n");
}

/// Memory of every kind that a template has: small objects, a large block, variables of libraries, the C
/// heap.
constexpr const char* kWithMemory = R"(
import sys
sys.path.insert(0, '/opt/forking')
import forking
import ctypes, json, subprocess, multiprocessing, decimal
words = ['word %d' % i for i in range(200000)]
block = bytearray(b'x' * (3 << 20))
table = {i: str(i) for i in range(30000)}
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.calloc.restype = libc.realloc.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.calloc.argtypes = [ctypes.c_size_t], [ctypes.c_size_t] * 2
libc.realloc.argtypes, libc.free.argtypes = [ctypes.c_void_p, ctypes.c_size_t], [ctypes.c_void_p]
small = [libc.malloc(5000) for _ in range(1000)]
for each in small: ctypes.memset(each, 7, 5000)
large = libc.malloc(1 << 20)
ctypes.memset(large, 7, 1 << 20)
def intact():
    return (all(word == 'word %d' % i for i, word in enumerate(words)) and block == b'x' * (3 << 20) and
            all(table[i] == str(i) for i in table) and ctypes.string_at(large, 1 << 20) == b'\7' * (1 << 20) and
            all(ctypes.string_at(each, 5000) == b'\7' * 5000 for each in small))
forking.rest()
forking.wait(3, 4)
exec(sys.stdin.read())
)";

TEST_F(TemplateTest, MemoryOfOneForkIsUnseenByOthers) {
  const auto from = make(template_spec(kWithMemory));
  ASSERT_TRUE(from);
  Fork waiting = fork(*from);
  EXPECT_EQ(run_fork(*from, R"(
print(intact())
for i in range(0, len(words), 7): words[i] = 'changed'
for i in range(len(block)): block[i] = 0
table.clear()
for each in small: ctypes.memset(each, 1, 5000)
ctypes.memset(large, 1, 1 << 20)
print(intact())
)")
                .out,
            "True\nFalse\n");
  EXPECT_EQ(finish(std::move(waiting), "print(intact())").out, "True\n");
  EXPECT_EQ(run_fork(*from, "print(intact())").out, "True\n");
}

TEST_F(TemplateTest, ForksGetFreshMemoryAsAnyProgramDoes) {
  const auto from = make(template_spec(kWithMemory));
  ASSERT_TRUE(from);
  EXPECT_EQ(run_fork(*from, R"(
for each in small[::2]: libc.free(each)
libc.malloc_trim(0)
fresh = [libc.calloc(1, size) for size in (100, 5000, 70000, 200000, 1 << 20, 40 << 20) for _ in range(9)]
sizes = [size for size in (100, 5000, 70000, 200000, 1 << 20, 40 << 20) for _ in range(9)]
print(all(ctypes.string_at(each, size) == bytes(size) for each, size in zip(fresh, sizes)))
grown = libc.realloc(large, 64 << 20)
print(ctypes.string_at(grown, 1 << 20) == b'\7' * (1 << 20))
ctypes.memset(grown, 1, 64 << 20)
grown = libc.realloc(small[1], 8 << 20)
ctypes.memset(grown, 1, 8 << 20)
block.extend(bytes(9 << 20))
words.extend('word %d' % i for i in range(len(words), 500000))
print(len(block) == 12 << 20 and block[:3] == b'xxx' and not block[-1], words[-1])
del words, table, block
import gc; gc.collect(); libc.malloc_trim(0)
print(sum(len(str(i)) for i in range(300000)))
)")
                .out,
            "True\nTrue\nTrue word 499999\n1688890\n");
}

TEST_F(TemplateTest, ForksOfAForkHaveTheirMemory) {
  const auto from = make(template_spec(kWithMemory));
  ASSERT_TRUE(from);
  EXPECT_EQ(run_fork(*from, R"(
def look(number):
    words[number] = 'mine'
    return number, len(words), block[0]
with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(look, [1, 2]))
print(intact(), subprocess.check_output(['/bin/echo', 'hi']))
)")
                .out,
            "[(1, 200000, 120), (2, 200000, 120)]\nTrue b'hi\\n'\n");
}

TEST_F(TemplateTest, NoForkReachesTheMemoryFile) {
  const auto from = make(template_spec(kWithMemory));
  ASSERT_TRUE(from);
  const bool counted = host().enforcement().memory.starts_with("cgroup");  // else there are no such files
  EXPECT_EQ(run_fork(*from, R"(
import os
names = [os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + fd)]
print([name for name in names if 'template' in name], '/memfd:template' in open('/proc/self/maps').read())
opened = 0
for line in open('/proc/self/maps'):
    if '/memfd:template' not in line: continue
    for mode in (os.O_RDONLY, os.O_RDWR):
        try:
            os.open('/proc/self/map_files/' + line.split()[0], mode)
            opened += 1
        except OSError: pass
print(opened, intact())
)")
                .out,
            fmt::format("[] {}\n0 True\n", counted ? "True" : "False"));
}

TEST_F(TemplateTest, ForksOfATemplateWhoseMemoryFitsInNoFile) {
  TemplateSpec spec = template_spec(kWithMemory);
  spec.prepare.limits.file_size = mib(3);
  const auto from = make(std::move(spec));
  ASSERT_TRUE(from);
  EXPECT_EQ(run_fork(*from, "words[0] = 'mine'; print(intact())").out, "False\n");
  EXPECT_EQ(run_fork(*from, "print(intact())").out, "True\n");
}

TEST_F(TemplateTest, WorkspacesArriveLate) {
  const TempDir workspace(host().workspace_owner());
  workspace.write("given", "hello");
  const auto from = make();
  ASSERT_TRUE(from);
  Fork waiting = fork(*from);
  const auto attached = loop_.run_until_done(
      waiting.sandbox->attach({{workspace.path(), "/sandbox/data", Access::read_write}}));
  ASSERT_TRUE(attached) << attached.error().message;
  const Ran ran = finish(std::move(waiting), R"(
import os
print(open('/sandbox/data/given').read(), os.stat('/sandbox/data').st_uid)
open('/sandbox/data/made', 'w').write('back')
)");
  EXPECT_EQ(ran.out, "hello 1000\n");
  EXPECT_EQ(workspace.read("made"), "back");
}

TEST_F(TemplateTest, ReportsHowTheForkEnded) {
  const auto from = make();
  ASSERT_TRUE(from);
  EXPECT_EQ(run_fork(*from, "sys.exit(3)").exit_code(), 3);
  const Ran crashed = run_fork(*from, "import os; os.kill(os.getpid(), 11)");
  const auto* signalled = std::get_if<Signalled>(&crashed.outcome);
  ASSERT_NE(signalled, nullptr);
  EXPECT_EQ(signalled->signal, SIGSEGV);
  const Ran endless = finish(fork(*from), "while True: pass", Milliseconds(200));
  EXPECT_TRUE(std::holds_alternative<TimedOut>(endless.outcome));
}

TEST_F(TemplateTest, LeftProcessesEndWithTheProgram) {
  const auto from = make();
  ASSERT_TRUE(from);
  const Ran ran = run_fork(*from, "import os\nif os.fork() == 0:\n  os.setsid()\n  while True: pass");
  EXPECT_EQ(ran.exit_code(), 0);
}

TEST_F(TemplateTest, HoldsEachForkToItsLimits) {
  TemplateSpec spec = template_spec();
  spec.prepare.limits.memory = mib(256);
  spec.prepare.limits.processes = 20;
  const auto from = make(std::move(spec));
  ASSERT_TRUE(from);
  const Ran hungry = run_fork(*from, "data = []\nwhile True: data.append(bytearray(1 << 20))");
  EXPECT_TRUE(std::holds_alternative<OutOfMemory>(hungry.outcome) || hungry.exit_code() == 1) << hungry.out;
  const Ran many = run_fork(*from,
                            "import threading, time\nfor _ in range(100): "
                            "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()");
  EXPECT_TRUE(std::holds_alternative<ProcessLimit>(many.outcome) || many.exit_code() == 1) << many.out;
  EXPECT_EQ(run_fork(*from, "print(1)").out, "1\n");
}

TEST_F(TemplateTest, ProcessesOfOneForkAreNoneOfTheNext) {
  TemplateSpec spec = template_spec();
  spec.prepare.limits.processes = 60;
  const auto from = make(std::move(spec));
  ASSERT_TRUE(from);
  std::vector<Fork> busy;
  for (int i = 0; i < 3; ++i) {
    busy.push_back(fork(*from));
    const std::string code =
        "import threading, time\n"
        "for _ in range(50): threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
        "print('started', flush=True)\ntime.sleep(99)\n";
    ASSERT_TRUE(loop_.run_until_done(busy.back().input.write_all(code, Deadline::after(Milliseconds(5000)))));
    busy.back().input.close();
    std::string said(7, ' ');
    ASSERT_TRUE(
        loop_.run_until_done(busy.back().output.read_some(said, Deadline::after(Milliseconds(5000)))));
    EXPECT_EQ(said, "started");
  }
  EXPECT_EQ(run_fork(*from, "print(1)").out, "1\n");
}

TEST_F(TemplateTest, RefusesMoreForksThanItHasRoomFor) {
  TemplateSpec spec = template_spec();
  spec.forks = 2;
  const auto from = make(std::move(spec));
  ASSERT_TRUE(from);
  const Fork one = fork(*from);
  Fork two = fork(*from);
  const auto third = loop_.run_until_done(fork_task(from.get()));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind, Kind::exhausted);
  EXPECT_EQ(finish(std::move(two), "print(2)").out, "2\n");
  EXPECT_EQ(run_fork(*from, "print(3)").out, "3\n");
}

TEST_F(TemplateTest, NamesWhatFailedBeforeTheFirstFork) {
  const auto made = loop_.run_until_done(host().make_template(template_spec("raise SystemExit(1)")));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("ended before"));
}

io::Task<std::string> all_of(io::Stream stream) {
  std::string text;
  std::string buffer(4096, '\0');
  for (;;) {
    auto got = co_await stream.read_some(buffer, Deadline::after(Milliseconds(10'000)));
    if (!got || *got == 0) co_return text;
    text.append(buffer, 0, *got);
  }
}

TEST_F(TemplateTest, ItselfHasNoCapabilitiesAndNoNetwork) {
  io::Pipe said = io::make_pipe().value();
  TemplateSpec spec = template_spec(std::string(kWalls) + "sys.stdout.flush(); os.close(1)\n" + kTemplate);
  spec.start.standard_output = std::move(said.write);
  const auto from = make(std::move(spec));
  ASSERT_TRUE(from);
  const std::string text = loop_.run_until_done(all_of(io::Stream(std::move(said.read))));
  EXPECT_THAT(text, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(text, HasSubstr("CapBnd:\t0000000000000000"));
  EXPECT_THAT(text, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(text, HasSubstr("unshare -1 1\n"));
  EXPECT_THAT(text, HasSubstr("mount -1 1\n"));
}

/// Processes that were started with `marker` in an argument: a template and its forks.
std::vector<pid_t> processes_with(const std::string& marker) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.find(marker) != std::string::npos) found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

TEST_F(TemplateTest, OneThatDiesLeavesItsForksAloneAndMakesNoMore) {
  const std::string marker = fmt::format("# template of {}\n", ::getpid());
  const auto from = make(template_spec(marker + kTemplate));
  ASSERT_TRUE(from);
  Fork waiting = fork(*from);
  EXPECT_TRUE(from->alive());
  const std::vector<pid_t> processes = processes_with(marker);  // its fork has the same arguments
  ASSERT_EQ(processes.size(), 2U);
  ::kill(std::ranges::min(processes), SIGKILL);
  EXPECT_FALSE(loop_.run_until_done(fork_task(from.get())));
  EXPECT_FALSE(from->alive());
  EXPECT_EQ(finish(std::move(waiting), "print('alive')").out, "alive\n");
}

TEST_F(TemplateTest, EndsWhenNobodyHoldsItAndItsLastForkHasEnded) {
  const std::string marker = fmt::format("# last template of {}\n", ::getpid());
  auto from = make(template_spec(marker + kTemplate));
  ASSERT_TRUE(from);
  Fork last = fork(*from);
  std::vector<UniqueFd> alive;
  for (const pid_t pid : processes_with(marker)) alive.emplace_back(launcher::kernel::pidfd_open(pid));
  ASSERT_EQ(alive.size(), 2U);
  from.reset();
  EXPECT_EQ(finish(std::move(last), "print(1)").out, "1\n");
  for (const UniqueFd& process : alive) {
    EXPECT_TRUE(
        loop_.run_until_done(io::wait_readable(process.get(), Deadline::after(Milliseconds(10'000)))));
  }
}

}  // namespace
}  // namespace prims::sandbox::testing

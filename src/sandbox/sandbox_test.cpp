// Whole sandboxes on this host. As root the suite also runs once more as an ordinary user (user_test.cpp).
#include "sandbox/sandbox.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "io/stream.h"
#include "sandbox/test_support.h"

namespace prims::sandbox::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SandboxTest, RunsAShell) {
  const Ran ran = run(shell("echo hello from $(id -u)"));
  EXPECT_EQ(ran.exit_code(), 0);
  EXPECT_EQ(ran.out, "hello from 1000\n");
}

TEST_F(SandboxTest, RunsPython) {
  const Ran ran = run(python("import sys; print(sum(range(10))); sys.exit(3)"));
  EXPECT_EQ(ran.exit_code(), 3);
  EXPECT_EQ(ran.out, "45\n");
}

TEST_F(SandboxTest, ReportsTheSignalThatEndedTheProgram) {
  const Ran ran = run(shell("kill -SEGV $$"));
  const auto* signalled = std::get_if<Signalled>(&ran.outcome);
  ASSERT_NE(signalled, nullptr) << ran.out;
  EXPECT_EQ(signalled->signal, SIGSEGV);
}

TEST_F(SandboxTest, NamesTheStepWhenTheProgramCannotStart) {
  Program program;
  program.argv = {"/usr/bin/no-such-program"};
  const Ran ran = run(std::move(program));
  const auto* failed = std::get_if<SetupFailed>(&ran.outcome);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->step, "exec");
  EXPECT_EQ(failed->error, ENOENT);
}

TEST_F(SandboxTest, HoldsNoCapabilitiesAndCannotGainAny) {
  const Ran ran = run(shell("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"));
  EXPECT_EQ(ran.out,
            "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
            "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
}

TEST_F(SandboxTest, MapsOneUidAndNeverHostRoot) {
  const Ran ran = run(shell("cat /proc/self/uid_map /proc/self/gid_map"));
  EXPECT_THAT(ran.out, ::testing::ContainsRegex("^ +1000 +[1-9][0-9]* +1\n +1000 +[1-9][0-9]* +1\n$"));
}

TEST_F(SandboxTest, RootIsReadOnlyAndNoMountGivesRightsAway) {
  const Ran ran = run(python(R"(
import os
for line in open('/proc/self/mountinfo'):
    fields = line.split()
    point, options = fields[4], fields[5].split(',')
    assert 'nosuid' in options, line
    assert 'nodev' in options or point.startswith('/dev/'), line
    writable = point in ('/tmp', '/dev/shm', '/sandbox/home', '/sandbox/run', '/dev/pts')
    assert 'ro' in options or writable or point.startswith('/dev/'), line
for path in ('/x', '/etc/x', '/usr/x', '/mnt/x', '/env/x', '/dev/x', '/proc/self/comm',
             '/proc/sys/kernel/hostname'):
    try:
        open(path, 'w')
    except OSError:
        continue
    assert False, path
print('ok')
)"));
  EXPECT_EQ(ran.out, "ok\n");
}

TEST_F(SandboxTest, ShowsNothingOfTheHost) {
  const Ran ran = run(python(R"(
import os
def listed(path):
    try: return os.listdir(path)
    except OSError: return []
for path in ('/root', '/home', '/mnt', '/media', '/srv', '/var/log', '/boot', '/sys', '/run'):
    assert not listed(path), (path, listed(path))
for name in ('environ', 'maps', 'fd', 'mem'):
    try: data = os.listdir('/proc/1/fd') if name == 'fd' else open('/proc/1/' + name, 'rb').read()
    except OSError: data = b''
    assert not data, (name, data)
assert open('/proc/1/cmdline').read() == 'prims-init\0'
assert not open('/proc/kallsyms').read() and not os.listdir('/proc/bus')
cgroups = open('/proc/self/cgroup').read()
assert all(line.split(':', 2)[2] == '/' for line in cgroups.splitlines()), cgroups
assert open('/proc/sys/kernel/domainname').read() == '(none)\n'
assert set(os.listdir('/proc/self/fd')) <= {'0', '1', '2', '3'}, os.listdir('/proc/self/fd')
assert set(os.environ) <= {'HOME', 'LANG', 'PATH', 'LC_CTYPE'}, os.environ
print('ok', os.uname().nodename)
)"));
  EXPECT_EQ(ran.out, "ok sandbox\n");
}

TEST_F(SandboxTest, RefusesNewNamespaces) {
  const Ran ran = run(shell("unshare -U true || unshare -m true || unshare -n true || echo refused"));
  EXPECT_THAT(ran.out, HasSubstr("refused"));
}

TEST_F(SandboxTest, StartsWithCleanSignalsLimitsAndSession) {
  const Ran ran = run(python(R"(
import os, resource, signal
status = dict(line.rstrip('\n').split(':\t', 1) for line in open('/proc/self/status') if ':\t' in line)
assert int(status['SigBlk'], 16) == 0, status['SigBlk']
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
assert os.getsid(0) == os.getpid() and os.getcwd() == '/'
assert resource.getrlimit(resource.RLIMIT_CORE)[1] in (0, 1)
assert open('/proc/self/oom_score_adj').read() == '1000\n'
mask = os.umask(0); assert mask == 0o022, oct(mask)
print('ok')
)"));
  EXPECT_EQ(ran.out, "ok\n");
}

TEST_F(SandboxTest, HasLoopbackAndNoOtherNetwork) {
  const Ran ran = run(python(R"(
import socket, threading
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname()); server.accept()[0].send(b'x')
assert client.recv(1) == b'x'
assert socket.gethostbyname(socket.gethostname()) == '127.0.0.1'
for address in (('1.1.1.1', 443), ('10.0.0.1', 80), ('169.254.169.254', 80)):
    try:
        socket.create_connection(address, 3)
        assert False, address
    except OSError as error:
        pass
assert [name for _, name in socket.if_nameindex()] == ['lo']
print('ok')
)"));
  EXPECT_EQ(ran.out, "ok\n");
}

TEST_F(SandboxTest, OrdinaryPythonWorks) {
  const Ran ran = run(python(R"(
import multiprocessing, os, pty, pwd, ssl, subprocess, sys, tempfile, threading
assert pwd.getpwuid(os.getuid()).pw_name == 'user'
assert subprocess.check_output('printf abc | tr a-c A-C', shell=True) == b'ABC'
with tempfile.TemporaryDirectory() as d: open(d + '/f', 'w').write('x')
m, s = pty.openpty(); os.write(s, b'tty\n'); assert os.read(m, 9) == b'tty\r\n'
with multiprocessing.get_context('fork').Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
threads = [threading.Thread(target=len, args=('',)) for _ in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
assert ssl.create_default_context().get_ca_certs()
open('/dev/null', 'w').write('x'); assert os.urandom(4) and open('/dev/zero', 'rb').read(2) == b'\0\0'
open('/dev/stdout', 'w').write('through the link\n')
os.makedirs('/sandbox/home/a/b'); os.rename('/sandbox/home/a/b', '/sandbox/home/c')
print('ok')
)"));
  EXPECT_EQ(ran.out, "through the link\nok\n");
}

TEST_F(SandboxTest, AttachesDirectoriesAfterTheLockDown) {
  const TempDir workspace(host().workspace_owner());
  const TempDir layer(host().workspace_owner());
  workspace.write("in.txt", "given");
  layer.write("tool.py", "print('layer')");
  Program program = shell(
      "cat in.txt; echo made > out.txt && mkdir output && echo x > output/y && mv output/y output/z; "
      "stat -c %U out.txt; cat /env/tool.py; (echo no > /env/x) 2>/dev/null || echo refused");
  program.directory = "/sandbox/data";
  program.attachments = {{workspace.path(), "/sandbox/data", Access::read_write},
                         {layer.path(), "/env", Access::read_only}};
  const Ran ran = run(std::move(program));
  EXPECT_EQ(ran.out, "givenuser\nprint('layer')refused\n");
  EXPECT_EQ(workspace.read("out.txt"), "made\n");
  struct stat status{};
  ASSERT_EQ(::stat((workspace.path() + "/output/z").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, host().workspace_owner());
  EXPECT_FALSE(S_ISLNK(status.st_mode));
}

TEST_F(SandboxTest, FilesKeepTheirOwnerFromRunToRun) {
  const TempDir workspace(host().workspace_owner());
  for (int i = 0; i < 3; ++i) {
    Program program = shell(
        "umask 077; date >> /sandbox/data/log && chmod 600 /sandbox/data/log && wc -l < /sandbox/data/log");
    program.attachments = {{workspace.path(), "/sandbox/data", Access::read_write}};
    EXPECT_EQ(run(std::move(program)).out, std::to_string(i + 1) + "\n");
  }
}

TEST_F(SandboxTest, SaysWhatCouldNotBeAttached) {
  Program program = shell("true");
  program.attachments = {{"/nonexistent/here", "/sandbox/data", Access::read_write}};
  const auto ran = loop_.run_until_done(run_task(std::move(program)));
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("/nonexistent/here"));
}

TEST_F(SandboxTest, EndsWithTheProgramWhateverItLeftBehind) {
  const Ran ran = run(python(R"(
import os, signal, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 32):
                try: signal.signal(number, signal.SIG_IGN)
                except OSError: pass
            while True: time.sleep(1)
        os._exit(0)
print('main done', flush=True)
)"));
  EXPECT_EQ(ran.exit_code(), 0);
  EXPECT_EQ(ran.out, "main done\n");
}

TEST_F(SandboxTest, KillsEverythingAtTheDeadline) {
  Program program = python(R"(
import os, signal
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except OSError: pass
print('spinning', flush=True)
os.fork(); os.fork()
while True: pass
)");
  program.limit = Milliseconds(500);
  const auto before = Clock::now();
  const Ran ran = run(std::move(program));
  EXPECT_TRUE(std::holds_alternative<TimedOut>(ran.outcome));
  EXPECT_EQ(ran.out, "spinning\n");
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(10));
}

TEST_F(SandboxTest, PassesExtraDescriptorsAndNoOthers) {
  int ends[2] = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd ours(ends[0]);
  Program program = python("import os; os.write(3, b'private'); print(sorted(os.listdir('/proc/self/fd')))");
  program.extra.push_back(UniqueFd(ends[1]));
  const Ran ran = run(std::move(program));
  EXPECT_EQ(ran.out, "['0', '1', '2', '3', '4']\n");  // 4 is the directory being listed
  char text[16] = {};
  EXPECT_EQ(::read(ours.get(), text, sizeof text), 7);
}

io::Task<Result<Outcome>> interrupt(Host& host) {
  PrepareSpec spec{.root = minimal_root()};
  auto made = co_await host.prepare(std::move(spec));
  PRIMS_CO_ASSIGN_OR_RETURN(auto sandbox, std::move(made));
  int ends[2] = {};
  if (::pipe2(ends, O_CLOEXEC) != 0) co_return fail_errno("pipe2");
  StartSpec start;
  start.argv = {"/bin/sh", "-c", "trap 'exit 42' USR1; echo ready; while :; do sleep 0.01; done"};
  start.standard_output = UniqueFd(ends[1]);
  io::Stream output{UniqueFd(ends[0])};
  auto started = co_await sandbox->start(std::move(start));
  PRIMS_CO_RETURN_ON_ERROR(std::move(started));
  auto ready = co_await output.readable(Deadline::after(Milliseconds(10'000)));
  PRIMS_CO_RETURN_ON_ERROR(std::move(ready));
  sandbox->signal(SIGUSR1);
  const bool ended = co_await sandbox->ended_by(Deadline::after(Milliseconds(10'000)));
  if (!ended) sandbox->kill(TimedOut{});
  co_return co_await sandbox->finish();
}

TEST_F(SandboxTest, SignalsTheProgram) {
  const auto outcome = loop_.run_until_done(interrupt(host()));
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto* exited = std::get_if<Exited>(&*outcome);
  ASSERT_NE(exited, nullptr);
  EXPECT_EQ(exited->code, 42);
}

/// Accepts one connection from inside, answers, and waits for the end.
io::Task<Result<std::string>> serve_broker(Host& host) {
  PrepareSpec spec{.root = minimal_root(), .network = Network::loopback_broker, .broker_port = 3128};
  auto made = co_await host.prepare(std::move(spec));
  PRIMS_CO_ASSIGN_OR_RETURN(auto sandbox, std::move(made));
  io::Stream listener(sandbox->take_broker_socket());
  StartSpec start;
  start.argv = {
      "/usr/bin/python3", "-I", "-c",
      "import socket; s = socket.create_connection(('127.0.0.1', 3128)); assert s.recv(5) == b'hello'; "
      "s.send(b'thanks')"};
  auto started = co_await sandbox->start(std::move(start));
  PRIMS_CO_RETURN_ON_ERROR(std::move(started));
  auto ready = co_await listener.readable(Deadline::after(Milliseconds(10'000)));
  PRIMS_CO_RETURN_ON_ERROR(std::move(ready));
  io::Stream peer(UniqueFd(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC)));
  auto sent = co_await peer.write_all("hello", Deadline::after(Milliseconds(10'000)));
  PRIMS_CO_RETURN_ON_ERROR(std::move(sent));
  std::string answer(16, '\0');
  auto got = co_await peer.read_some(answer, Deadline::after(Milliseconds(10'000)));
  PRIMS_CO_RETURN_ON_ERROR(std::move(got));
  answer.resize(*got);
  co_return answer;
}

TEST_F(SandboxTest, BrokerSocketListensInsideAndIsHeldOutside) {
  const auto answer = loop_.run_until_done(serve_broker(host()));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, "thanks");
}

TEST_F(SandboxTest, BindsFromBelowAPrivateDirectory) {
  const TempDir home(::geteuid());
  const std::string inner = home.path() + "/versions";
  ASSERT_EQ(::mkdir(inner.c_str(), 0755), 0);
  home.write("versions/interpreter", "#!/bin/sh\necho found\n");
  ASSERT_EQ(::chmod((inner + "/interpreter").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(home.path().c_str(), 0700), 0);
  Program program = shell(inner + "/interpreter; ls " + home.path() + " 2>/dev/null || echo not listed");
  program.prepare.root.binds.push_back({inner, inner, Access::read_only});
  EXPECT_EQ(run(std::move(program)).out, "found\nnot listed\n");
}

TEST_F(SandboxTest, NamesTheStepThatFailedInPreparing) {
  PrepareSpec spec{.root = minimal_root()};
  spec.root.binds.push_back({"/etc/hostname", "/usr/no/such/target", Access::read_only});
  const auto sandbox = loop_.run_until_done(host().prepare(std::move(spec)));
  ASSERT_FALSE(sandbox);
  EXPECT_THAT(sandbox.error().message, HasSubstr("mount bind: No such file"));
}

TEST_F(SandboxTest, RefusesARootThatIsNoTree) {
  PrepareSpec spec{.root = minimal_root()};
  spec.root.files.push_back({"/etc/../x", ""});
  EXPECT_EQ(loop_.run_until_done(host().prepare(std::move(spec))).error().kind, Kind::invalid_input);
}

TEST_F(SandboxTest, MemoryThatIsTooMuchIsOutOfMemoryWithEvidence) {
  Program program = python("x = []\nwhile True: x.append(bytearray(b'x' * (16 << 20)))");
  program.prepare.limits.memory = mib(512);
  const Ran ran = run(std::move(program));
  if (host().enforcement().memory.starts_with("cgroup")) {
    const auto* exceeded = std::get_if<OutOfMemory>(&ran.outcome);
    ASSERT_NE(exceeded, nullptr) << ran.outcome.index() << ran.out;
    EXPECT_EQ(exceeded->limit, mib(512));
    EXPECT_GT(exceeded->peak, mib(256));
  } else {
    EXPECT_TRUE(std::holds_alternative<OutOfMemory>(ran.outcome) ||
                ran.out.find("MemoryError") != std::string::npos);
  }
}

TEST_F(SandboxTest, TooManyProcessesAreAProcessLimit) {
  Program program = python("import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(100)");
  program.prepare.limits.processes = 32;
  const Ran ran = run(std::move(program));
  const auto* limit = std::get_if<ProcessLimit>(&ran.outcome);
  ASSERT_NE(limit, nullptr) << ran.outcome.index() << ran.out;
  EXPECT_EQ(limit->limit, 32U);
  EXPECT_EQ(limit->exit_code, 1);
}

TEST_F(SandboxTest, CpuTimeIsCountedOverAllProcesses) {
  Program program = shell("while :; do :; done & while :; do :; done & wait");
  program.prepare.limits.cpu_time = Milliseconds(1000);
  const Ran ran = run(std::move(program));
  const auto* exceeded = std::get_if<CpuTimeExceeded>(&ran.outcome);
  ASSERT_NE(exceeded, nullptr) << ran.outcome.index() << ran.out;
  EXPECT_GE(exceeded->used, Milliseconds(900));
  EXPECT_GE(ran.usage.cpu, Milliseconds(900));
}

TEST_F(SandboxTest, AFullWorkspaceIsADiskLimit) {
  const TempDir workspace(host().workspace_owner());
  Program program =
      shell("for i in 1 2 3 4 5 6 7 8; do head -c 8000000 /dev/zero > /sandbox/data/$i; done; sleep 20");
  program.prepare.limits.workspace = mib(16);
  program.attachments = {{workspace.path(), "/sandbox/data", Access::read_write}};
  const Ran ran = run(std::move(program));
  EXPECT_TRUE(std::holds_alternative<DiskLimit>(ran.outcome)) << ran.outcome.index() << ran.out;
}

TEST_F(SandboxTest, WhoFillsTheWorkspaceAndLeavesAtOnceHasCrossedTheLimitToo) {
  const TempDir workspace(host().workspace_owner());
  Program program = shell("head -c 24000000 /dev/zero > /sandbox/data/large");
  program.prepare.limits.workspace = mib(16);
  program.attachments = {{workspace.path(), "/sandbox/data", Access::read_write}};
  const Ran ran = run(std::move(program));
  const auto* limit = std::get_if<DiskLimit>(&ran.outcome);
  ASSERT_NE(limit, nullptr) << ran.outcome.index() << ran.out;
  EXPECT_GT(limit->peak, mib(16));
}

TEST_F(SandboxTest, DirectoriesWithoutRightsHideNothing) {
  for (const char* hide : {"chmod 0 /sandbox/data/a/b /sandbox/data/a", "chmod 0 /sandbox/data",
                           "chmod 400 /sandbox/data/a/b"}) {
    const TempDir workspace(host().workspace_owner());
    Program program = shell(std::string("mkdir -p /sandbox/data/a/b; "
                                        "head -c 24000000 /dev/zero > /sandbox/data/a/b/large; ") +
                            hide);
    program.prepare.limits.workspace = mib(16);
    program.attachments = {{workspace.path(), "/sandbox/data", Access::read_write}};
    const Ran ran = run(std::move(program));
    EXPECT_TRUE(std::holds_alternative<DiskLimit>(ran.outcome)) << ran.outcome.index() << ran.out << hide;
  }
}

TEST_F(SandboxTest, TheWorkspaceIsMeasuredAtTheEnd) {
  const TempDir workspace(host().workspace_owner());
  Program program = shell("head -c 3000000 /dev/zero > /sandbox/data/some");
  program.attachments = {{workspace.path(), "/sandbox/data", Access::read_write}};
  const Ran ran = run(std::move(program));
  EXPECT_EQ(ran.exit_code(), 0) << ran.out;
  EXPECT_GE(ran.usage.disk.count, 3'000'000U);
}

TEST_F(SandboxTest, BuffersOfSocketsAreMemoryToo) {
  Program program = python(
      "import os, socket, time\n"
      "for child in range(8):\n"
      "  if os.fork() == 0: break\n"
      "pairs = [socket.socketpair() for _ in range(500)]\n"
      "for near, far in pairs:\n"
      "  near.setblocking(False)\n"
      "  near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)\n"
      "  try:\n"
      "    while True: near.send(bytes(65536))\n"
      "  except BlockingIOError: pass\n"
      "time.sleep(100)");
  program.prepare.limits.memory = mib(512);
  const Ran ran = run(std::move(program));
  EXPECT_TRUE(std::holds_alternative<OutOfMemory>(ran.outcome)) << ran.outcome.index() << ran.out;
}

TEST_F(SandboxTest, NoSignalIsIgnoredOrBlocked) {
  const Ran ran = run(shell("grep -E '^Sig(Ign|Blk)' /proc/self/status"));
  EXPECT_EQ(ran.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

}  // namespace
}  // namespace prims::sandbox::testing

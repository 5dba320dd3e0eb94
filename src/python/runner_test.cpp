// Programs in real sandboxes, under every interpreter this machine has.
#include "python/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"
#include "python/test_python.h"

namespace prims::python {
namespace {

using sandbox::Exited;
using testing_support::make_python;
using testing_support::Python;
using testing_support::TempDir;
using testing_support::temporary_workspaces;
namespace fs = std::filesystem;

class RunnerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto host = sandbox::Host::create({});
    ASSERT_TRUE(host) << host.error().message;
    host_ = *std::move(host);
    python_ = make_python("");
    ASSERT_TRUE(python_);
  }
  static void TearDownTestSuite() {
    python_.reset();
    host_.reset();
  }

  RunnerTest() {
    ::unsetenv("PYTHONUNBUFFERED");
    ::unsetenv("PYTHONDONTWRITEBYTECODE");
    const uid_t owner = host_->workspace_owner();
    if (::geteuid() == 0) EXPECT_EQ(::chown(workspace_.path().c_str(), owner, owner), 0);
  }

  RunSpec spec(std::string code) const {
    RunSpec spec;
    spec.code = std::move(code);
    spec.workspace = Workspace{.directory = workspace_.path()};
    spec.layer.directory = python_->layer.path();
    spec.limits.wall = Milliseconds(20'000);
    return spec;
  }

  RunResult run(RunSpec spec) { return run_under(*python_, std::move(spec)); }
  RunResult run(std::string code) { return run(spec(std::move(code))); }

  RunResult run_under(const Python& python, RunSpec spec) {
    spec.layer.directory = python.layer.path();
    const auto runner = Runner::create(*host_, python.interpreter, temporary_workspaces(*host_));
    auto ran = loop_.run_until_done(runner->run(std::move(spec), std::make_shared<io::Cancellation>()));
    EXPECT_TRUE(ran) << ran.error().message;
    return ran ? *std::move(ran) : RunResult{};
  }

  io::Loop loop_;
  TempDir workspace_;
  static std::unique_ptr<sandbox::Host> host_;
  static std::unique_ptr<Python> python_;
};

std::unique_ptr<sandbox::Host> RunnerTest::host_;
std::unique_ptr<Python> RunnerTest::python_;

int exit_code(const RunResult& result) {
  const auto* exited = std::get_if<Exited>(&result.outcome);
  EXPECT_TRUE(exited) << "outcome " << result.outcome.index() << ": " << result.err.head;
  return exited ? exited->code : -1;
}

Milliseconds elapsed(Clock::time_point start) {
  return std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

TEST_F(RunnerTest, GivesOutputValueAndExitCode) {
  const RunResult result = run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n40 + 2");
  EXPECT_EQ(exit_code(result), 0);
  EXPECT_EQ(result.out.head, "out\n");
  EXPECT_EQ(result.err.head, "err\n");
  ASSERT_TRUE(result.value);
  EXPECT_EQ(result.value->text, "42");
  EXPECT_EQ(result.value->type, "int");
  EXPECT_FALSE(result.error);
  EXPECT_EQ(result.note, "");
}

TEST_F(RunnerTest, WorksUnderEveryInterpreter) {
  for (const std::string choice : {"3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "/usr/bin/python3"}) {
    const auto python = make_python(choice);
    if (!python) {
      std::cout << "SKIPPED: no Python " << choice << " on this machine\n";
      continue;
    }
    const RunResult result =
        run_under(*python, spec("import sys, sqlite3, ssl, ctypes, zlib\nimport multiprocessing as mp\ndef "
                                "f(x):\n    return x * x\n"
                                "if __name__ == '__main__':\n    with mp.get_context('spawn').Pool(2) as p: "
                                "print(p.map(f, [1, 2]))\n"
                                "    with mp.get_context('fork').Pool(2) as p: print(p.map(f, [3, 4]))\n"
                                "'%d.%d.%d' % sys.version_info[:3]"));
    EXPECT_EQ(exit_code(result), 0) << choice;
    EXPECT_EQ(result.out.head, "[1, 4]\n[9, 16]\n") << result.err.head;
    ASSERT_TRUE(result.value) << choice;
    EXPECT_EQ(result.value->text, "'" + python->interpreter.version + "'");
  }
}

TEST_F(RunnerTest, TellsErrorsInTheUserSLines) {
  const RunResult result = run("def f():\n    return {}['k']\nprint('before')\nf()\n");
  EXPECT_EQ(exit_code(result), 1);
  EXPECT_EQ(result.out.head, "before\n");
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->type, "KeyError");
  EXPECT_EQ(result.error->message, "'k'");
  EXPECT_EQ(result.error->line, 2);
  ASSERT_EQ(result.error->frames.size(), 2U);
  EXPECT_EQ(result.error->frames[0].line, 4);
  EXPECT_EQ(result.error->frames[1].name, "f");
  EXPECT_EQ(result.error->frames[1].file, "main.py");
  EXPECT_NE(result.err.head.find("File \"/sandbox/run/main.py\", line 2, in f"), std::string::npos)
      << result.err.head;
}

TEST_F(RunnerTest, CodeReachesTheCompilerAsBytes) {
  EXPECT_EQ(run("\xef\xbb\xbftext = '''one\r\ntwo'''\r\nprint(repr(text))\r\n").out.head, "'one\\ntwo'\n");
  EXPECT_EQ(run("# coding: latin-1\nprint(ascii('\xe9'))").out.head, "'\\xe9'\n");
}

TEST_F(RunnerTest, EndsAsTheProgramDoes) {
  EXPECT_EQ(exit_code(run("import sys\nsys.exit(3)")), 3);
  EXPECT_EQ(exit_code(run("import os\nprint('x', end='')\nos._exit(5)")), 5);
  EXPECT_EQ(exit_code(run("x = (")), 1);
  const RunResult fault = run("import os, signal\nprint('before')\nos.kill(os.getpid(), signal.SIGSEGV)");
  ASSERT_TRUE(std::holds_alternative<sandbox::Signalled>(fault.outcome));
  EXPECT_EQ(std::get<sandbox::Signalled>(fault.outcome).signal, SIGSEGV);
  EXPECT_EQ(fault.out.head, "before\n");
}

TEST_F(RunnerTest, FindsItsSurroundings) {
  const RunResult result =
      run("import os, sys\nprint(os.getcwd(), sys.path[0], __file__, os.environ['HOME'], os.getuid(), "
          "sys.stdout.encoding)\n"
          "open('kept.txt', 'w').write('x')\nopen(os.path.expanduser('~/gone.txt'), 'w').write('x')\n"
          "print(sorted(n for n in os.environ if n.startswith('PYTHON')), sys.argv[1:])");
  EXPECT_EQ(result.out.head,
            "/sandbox/data /sandbox/data /sandbox/run/main.py /sandbox/home 1000 utf-8\n"
            "['PYTHONDONTWRITEBYTECODE', 'PYTHONUNBUFFERED'] []\n")
      << result.err.head;
  EXPECT_TRUE(fs::exists(workspace_.path() / "kept.txt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(workspace_.path()), fs::directory_iterator()), 1);
}

TEST_F(RunnerTest, AnEndlessProgramGetsItsTime) {
  for (const auto& [code, line] :
       {std::pair{"print('half', end='')\nwhile True:\n    pass", 3},
        std::pair{"import time\nprint('half', end='')\n\ntime.sleep(60)", 4},
        std::pair{"print('half', end='')\nx = 7 ** 10000000\ny = x ** 100\n", 3}}) {
    RunSpec endless = spec(code);
    endless.limits.wall = Milliseconds(1000);
    const auto start = Clock::now();
    const RunResult result = run(std::move(endless));
    ASSERT_TRUE(std::holds_alternative<sandbox::TimedOut>(result.outcome)) << result.err.head;
    EXPECT_EQ(result.out.head, "half");
    if (line == 3 && result.last_line == 2) continue;  // the slow power may take its time
    EXPECT_EQ(result.last_line, line);
    EXPECT_LT(result.timings.run, Milliseconds(1500));
    EXPECT_LT(elapsed(start), result.timings.start + Milliseconds(2500));
  }
}

TEST_F(RunnerTest, NeitherDaemonsNorThreadsOutliveTheirTime) {
  RunSpec stubborn = spec(
      "import os, signal, subprocess, threading, time\nfor n in range(1, 32):\n"
      "    if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\n"
      "subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
      "threading.Thread(target=time.sleep, args=(300,)).start()\nif os.fork() == 0: os.kill(os.getpid(), "
      "signal.SIGSTOP)\n"
      "'value'");
  stubborn.limits.wall = Milliseconds(1000);
  const RunResult result = run(std::move(stubborn));
  EXPECT_TRUE(std::holds_alternative<sandbox::TimedOut>(result.outcome));
  EXPECT_LT(result.timings.run, Milliseconds(1500));
  ASSERT_TRUE(result.value) << "the main code had ended before the limit";
}

TEST_F(RunnerTest, ADaemonLeftBehindDelaysNothing) {
  const auto start = Clock::now();
  const RunResult result =
      run("import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], "
          "start_new_session=True)\nprint('started')");
  EXPECT_EQ(exit_code(result), 0);
  EXPECT_EQ(result.out.head, "started\n");
  EXPECT_LT(elapsed(start), Milliseconds(10'000));
}

TEST_F(RunnerTest, OutputIsBoundedInMemoryAndInTotal) {
  RunSpec talkative = spec("import sys\nfor i in range(200000): sys.stdout.write('%07d\\n' % i)");
  talkative.limits.shown_output = kib(4);
  const RunResult long_output = run(std::move(talkative));
  EXPECT_EQ(exit_code(long_output), 0);
  EXPECT_EQ(long_output.out.total_bytes, 1'600'000U);
  EXPECT_TRUE(long_output.out.head.starts_with("0000000\n"));
  EXPECT_TRUE(long_output.out.tail.ends_with("0199999\n"));
  EXPECT_EQ(long_output.out.head.size() + long_output.out.tail.size(), 4096U);

  RunSpec endless = spec("while True: print('x' * 100_000)");
  endless.limits.kept_output = mib(1);
  const RunResult result = run(std::move(endless));
  ASSERT_TRUE(std::holds_alternative<sandbox::OutputLimit>(result.outcome));
  EXPECT_LE(result.out.head.size() + result.out.tail.size(), kib(64).count);
}

TEST_F(RunnerTest, BytesComeAsTheyAre) {
  const RunResult result = run("import sys\nsys.stdout.buffer.write(bytes(range(256)))");
  EXPECT_EQ(result.out.total_bytes, 256U);
  EXPECT_EQ(result.out.head[0x81], '\x81');
}

TEST_F(RunnerTest, InputIsReadAsTheProgramWantsIt) {
  RunSpec echo = spec("import sys\nfor line in sys.stdin: sys.stdout.write(line)");
  echo.input = std::string(3'000'000, 'i') + "\nend\n";
  const RunResult echoed = run(std::move(echo));
  EXPECT_EQ(exit_code(echoed), 0);
  EXPECT_EQ(echoed.out.total_bytes, 3'000'005U);
  RunSpec deaf = spec("print('done')");
  deaf.input = std::string(3'000'000, 'i');
  EXPECT_EQ(run(std::move(deaf)).out.head, "done\n");
  const RunResult none = run("input('more? ')");
  ASSERT_TRUE(none.error);
  EXPECT_EQ(none.error->type, "EOFError");
}

TEST_F(RunnerTest, ADescriptorIsPassedOnWhileTheProgramRuns) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd writer(ends[1]);
  UniqueFd shared(::dup(ends[0]));
  RunSpec talk = spec("for _ in range(2): print(input(), flush=True)");
  talk.input = UniqueFd(ends[0]);
  ASSERT_EQ(::write(writer.get(), "first\n", 6), 6);
  bool answered = false;
  talk.on_output = [&](Stream, std::string_view) {
    if (!std::exchange(answered, true)) EXPECT_EQ(::write(writer.get(), "second\n", 7), 7);
  };
  // The pipe stays open: the end of the program is the end of the run.
  const RunResult talked = run(std::move(talk));
  EXPECT_EQ(talked.out.head, "first\nsecond\n");
  EXPECT_EQ(exit_code(talked), 0);
  EXPECT_EQ(::fcntl(shared.get(), F_GETFL) & O_NONBLOCK, 0);

  RunSpec all = spec("import sys; print(len(sys.stdin.buffer.read()))");
  all.input = std::move(shared);
  ASSERT_EQ(::write(writer.get(), "to the end", 10), 10);
  writer.reset();
  EXPECT_EQ(run(std::move(all)).out.head, "10\n");
}

TEST_F(RunnerTest, AFileAsInputIsReadToItsEndButADevicesEndIsNotWaitedFor) {
  const fs::path file = workspace_.path() / "input";
  std::ofstream(file) << std::string(3'000'000, 'f');
  RunSpec whole = spec("import sys; print(len(sys.stdin.buffer.read()))");
  whole.input = UniqueFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(run(std::move(whole)).out.head, "3000000\n");
  RunSpec endless = spec("import sys; print(len(sys.stdin.buffer.read(100_000)))");
  endless.input = UniqueFd(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(run(std::move(endless)).out.head, "100000\n");
}

TEST_F(RunnerTest, OutputArrivesWhileTheProgramRuns) {
  RunSpec waiting = spec(
      "import os, time\nprint('first')\nwhile not os.path.exists('sign'): time.sleep(0.01)\nprint('second')");
  waiting.on_output = [this](Stream stream, std::string_view bytes) {
    if (stream == Stream::out && bytes.find("first") != std::string_view::npos)
      std::ofstream(workspace_.path() / "sign");
  };
  const RunResult result = run(std::move(waiting));
  EXPECT_EQ(exit_code(result), 0);
  EXPECT_EQ(result.out.head, "first\nsecond\n");
}

TEST_F(RunnerTest, CancellationEndsEverythingAtOnce) {
  auto cancellation = std::make_shared<io::Cancellation>();
  RunSpec slow =
      spec("import subprocess, time\nsubprocess.Popen(['sleep', '300'])\nprint('ready')\ntime.sleep(300)");
  Clock::time_point cancelled;
  slow.on_output = [&](Stream, std::string_view bytes) {
    if (!bytes.ends_with('\n')) return;  // print() writes the end of its line apart
    cancelled = Clock::now();
    cancellation->request();
  };
  const auto runner = Runner::create(*host_, python_->interpreter, temporary_workspaces(*host_));
  const auto ran = loop_.run_until_done(runner->run(std::move(slow), cancellation));
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(std::holds_alternative<sandbox::Cancelled>(ran->outcome));
  EXPECT_EQ(ran->out.head, "ready\n");
  EXPECT_LT(elapsed(cancelled), Milliseconds(1000));
}

TEST_F(RunnerTest, CancelledBeforeItBeginsRunsNothing) {
  auto cancellation = std::make_shared<io::Cancellation>();
  cancellation->request();
  const auto runner = Runner::create(*host_, python_->interpreter, temporary_workspaces(*host_));
  const auto ran = loop_.run_until_done(runner->run(spec("open('ran', 'w')"), cancellation));
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(std::holds_alternative<sandbox::Cancelled>(ran->outcome));
  EXPECT_FALSE(fs::exists(workspace_.path() / "ran"));
}

TEST_F(RunnerTest, MemoryIsLimited) {
  RunSpec hungry =
      spec("print('begin')\nx = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('end')");
  hungry.limits.sandbox.memory = mib(512);
  const RunResult result = run(std::move(hungry));
  ASSERT_TRUE(std::holds_alternative<sandbox::OutOfMemory>(result.outcome)) << result.outcome.index();
  EXPECT_EQ(result.out.head, "begin\n");
}

TEST_F(RunnerTest, RefusedProcessesAndThreadsAreTheLimitAlsoWhenNoneIsLeftAtTheEnd) {
  for (const char* code :
       {"import os, signal\nchildren = []\ntry:\n    while True:\n        child = os.fork()\n"
        "        if child == 0: signal.pause()\n        children.append(child)\n"
        "finally:\n    for child in children: os.kill(child, 9), os.waitpid(child, 0)",
        "import subprocess\nchildren = []\ntry:\n    while True: children.append(subprocess.Popen(['sleep', "
        "'100']))\n"
        "finally:\n    for child in children: child.kill(), child.wait()",
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(100,), daemon=True).start()"}) {
    RunSpec greedy = spec(code);
    greedy.limits.sandbox.processes = 40;
    const RunResult result = run(std::move(greedy));
    const auto* limit = std::get_if<sandbox::ProcessLimit>(&result.outcome);
    ASSERT_NE(limit, nullptr) << result.outcome.index() << code << result.err.head;
    EXPECT_EQ(limit->limit, 40U);
  }
}

TEST_F(RunnerTest, ASocketThatIsNotReadyIsNoLimit) {
  const RunResult result =
      run("import socket\nnear, far = socket.socketpair()\nnear.setblocking(False)\nnear.recv(1)");
  EXPECT_EQ(exit_code(result), 1);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->type, "BlockingIOError");
}

TEST_F(RunnerTest, WhatAProgramWritesToThePrivateDescriptorHarmsNobody) {
  const std::string find =
      "import os, stat\nsocks = [n for n in range(3, 1024) if os.path.exists('/proc/self/fd/%d' % n) and "
      "stat.S_ISSOCK(os.fstat(n).st_mode)]\n";
  const RunResult forged =
      run(find + "for n in socks: os.write(n, b'\\xff' * 100000)\nprint(len(socks))\n'value'");
  EXPECT_EQ(exit_code(forged), 0);
  EXPECT_EQ(forged.out.head, "1\n") << forged.err.head;
  EXPECT_FALSE(forged.value);
  EXPECT_NE(forged.note, "");
  const RunResult closed = run(find + "for n in socks: os.close(n)\n'value'");
  EXPECT_EQ(exit_code(closed), 0);
  EXPECT_FALSE(closed.value);
  const RunResult faked = run("print('\\x10\\0\\0\\0\\1\\3\\0\\0{\"value\": 1}')");
  EXPECT_FALSE(faked.value);
}

TEST_F(RunnerTest, ALayerThatBreaksPythonIsAnErrorThatSaysSo) {
  const auto python = make_python("");
  ASSERT_TRUE(python);
  for (const auto& entry : fs::recursive_directory_iterator(python->layer.path())) {
    if (entry.path().filename() == "site-packages") {
      std::ofstream(entry.path() / "broken.pth") << "import os; os.write(2, b'broken layer'); os._exit(9)\n";
    }
  }
  RunSpec unlucky = spec("print(1)");
  unlucky.layer.directory = python->layer.path();
  const auto runner = Runner::create(*host_, python->interpreter, temporary_workspaces(*host_));
  const auto ran = loop_.run_until_done(runner->run(std::move(unlucky), nullptr));
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind, Kind::unavailable);
  EXPECT_NE(ran.error().message.find("broken layer"), std::string::npos) << ran.error().message;
}

io::Task<> run_and_check(Runner* runner, RunSpec spec, std::string expected, int* good) {
  const auto ran = co_await runner->run(std::move(spec), nullptr);
  if (ran && ran->value && ran->value->text == expected) ++*good;
}

io::Task<> run_many(Runner* runner, std::vector<RunSpec> specs, int* good) {
  io::TaskScope scope(co_await io::this_executor);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    scope.spawn(run_and_check(runner, std::move(specs[i]), std::to_string(i), good), "run");
  }
  [[maybe_unused]] auto joined = co_await scope.join();
}

TEST_F(RunnerTest, ManyAtOnceDoNotMix) {
  const auto runner = Runner::create(*host_, python_->interpreter, temporary_workspaces(*host_));
  std::vector<RunSpec> specs;
  for (int i = 0; i < 8; ++i) specs.push_back(spec(fmt::format("import time\ntime.sleep(0.05)\n{}", i)));
  int good = 0;
  loop_.run_until_done(run_many(runner.get(), std::move(specs), &good));
  EXPECT_EQ(good, 8);
}

TEST_F(RunnerTest, NoDescriptorIsLeftBehind) {
  run("print(1)");
  const std::size_t before = open_descriptors();
  constexpr std::size_t kRuns = 10;
  for (std::size_t i = 0; i < kRuns; ++i) run("import os\nos._exit(1)");
  // Fewer than one for each run: what the last one held is closed a moment after its result.
  EXPECT_LT(open_descriptors(), before + kRuns);
}

}  // namespace
}  // namespace prims::python

// The ways to a guest differ in speed and in nothing else: real sandboxes, templates and pools.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"
#include "python/runner.h"
#include "python/test_python.h"

namespace prims::python {
namespace {

using testing_support::make_python;
using testing_support::Python;
using testing_support::TempDir;
using testing_support::temporary_workspaces;

constexpr std::array kPaths = {Path::plain, Path::fork, Path::pool};
constexpr std::size_t kPoolSize = 4;

/// What all tests share, because templates take a moment.
struct Stage {
  std::unique_ptr<sandbox::Host> host;  // outlives the loop
  io::Loop loop;
  std::unique_ptr<Python> python;
  std::array<std::unique_ptr<Runner>, kPaths.size()> runners;  // by Path

  Runner& runner(Path path) { return *runners.at(static_cast<std::size_t>(path)); }
};

io::Task<> pause() {
  [[maybe_unused]] auto slept = co_await io::sleep_until(Deadline::after(Milliseconds(20)));
}

class PathsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::unsetenv("PYTHONUNBUFFERED");
    ::unsetenv("PYTHONDONTWRITEBYTECODE");
    stage_ = std::make_unique<Stage>();
    auto host = sandbox::Host::create({});
    ASSERT_TRUE(host) << host.error().message;
    stage_->host = *std::move(host);
    stage_->python = make_python("");
    ASSERT_TRUE(stage_->python);
    const layers::Interpreter& interpreter = stage_->python->interpreter;
    const io::Executor executor = stage_->loop.executor();
    const WorkspaceSource source = temporary_workspaces(*stage_->host);
    stage_->runners = {
        Runner::create(*stage_->host, interpreter, source),
        Runner::create_warm(executor, *stage_->host, interpreter, source, {.pool_size = 0}),
        Runner::create_warm(executor, *stage_->host, interpreter, source, {.pool_size = kPoolSize})};
  }
  static void TearDownTestSuite() {
    for (const auto& runner : stage_->runners) {
      EXPECT_TRUE(stage_->loop.run_until_done(runner->stop(Deadline::after(Milliseconds(10'000)))));
    }
    stage_.reset();
  }

  PathsTest() {
    const uid_t owner = stage_->host->workspace_owner();
    if (::geteuid() == 0) EXPECT_EQ(::chown(workspace_.path().c_str(), owner, owner), 0);
  }

  RunSpec spec(std::string code) const {
    RunSpec spec;
    spec.code = std::move(code);
    spec.workspace = Workspace{.directory = workspace_.path()};
    spec.layer.directory = stage_->python->layer.path();
    spec.limits.wall = Milliseconds(20'000);
    return spec;
  }

  RunResult run_once(Path path, std::string code) {
    auto ran = stage_->loop.run_until_done(stage_->runner(path).run(spec(std::move(code)), nullptr));
    EXPECT_TRUE(ran) << ran.error().message;
    return ran ? *std::move(ran) : RunResult{};
  }

  void SetUp() override {
    const bool counted = !stage_->host->enforcement().memory.starts_with("rlimit");
    for (const Path path : kPaths) {
      if (!without_templates_ && make_ready(path)) continue;
      ASSERT_FALSE(counted) << to_string(path);
      without_templates_ = true;
      GTEST_SKIP() << "no templates where rlimits bound memory";
    }
  }

  /// Until the template is there and the pool full.
  bool make_ready(Path path) {
    const Deadline deadline = Deadline::after(Milliseconds(15'000));
    for (std::size_t good = 0; good < 2;) {
      if (deadline.passed()) return false;
      for (int i = 0; path == Path::pool && i < 5; ++i) stage_->loop.run_until_done(pause());
      good = run_once(path, "pass").path == path ? good + 1 : 0;
    }
    for (int i = 0; i < 10; ++i) stage_->loop.run_until_done(pause());
    return true;
  }

  RunResult run(Path path, const std::string& code) {
    for (int i = 0; i < 100; ++i) {
      RunResult result = run_once(path, code);
      if (result.path == path) return result;
      stage_->loop.run_until_done(pause());
    }
    ADD_FAILURE() << "no run came by way of the " << to_string(path);
    return {};
  }

  static std::unique_ptr<Stage> stage_;
  static inline bool without_templates_ = false;
  TempDir workspace_;
};

std::unique_ptr<Stage> PathsTest::stage_;

io::Task<> run_into(Runner* runner, RunSpec spec, RunResult* result) {
  auto ran = co_await runner->run(std::move(spec), nullptr);
  if (ran) *result = *std::move(ran);
}

io::Task<> run_together(Runner* runner, std::vector<RunSpec> specs, std::vector<RunResult>* results) {
  io::TaskScope scope(co_await io::this_executor);
  results->resize(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    scope.spawn(run_into(runner, std::move(specs[i]), &results->at(i)), "run");
  }
  [[maybe_unused]] auto joined = co_await scope.join();
}

TEST_F(PathsTest, EveryRunHasNamespacesAndAFirstProcessOfItsOwn) {
  const std::string code =
      "import os, time\n"
      "print(*(n + str(os.stat('/proc/self/ns/' + n).st_ino) for n in ('pid', 'net', 'mnt', 'ipc', 'uts')))\n"
      "others = [n for n in os.listdir('/proc') if n.isdigit() and int(n) not in (1, os.getpid())]\n"
      "print('others', others, 'parent', os.getppid())\n"
      "while not os.path.exists('go'): time.sleep(0.01)\n";
  for (const Path path : kPaths) {
    std::size_t announced = 0;
    std::vector<RunSpec> specs;
    for (int i = 0; i < 3; ++i) {
      specs.push_back(spec(code));
      specs.back().on_output = [&](Stream, std::string_view bytes) {
        if (bytes.find("parent") == std::string_view::npos || ++announced < 3) return;
        std::ofstream(workspace_.path() / "go");  // all of them live at this moment
      };
    }
    std::vector<RunResult> results;
    stage_->loop.run_until_done(run_together(&stage_->runner(path), std::move(specs), &results));
    std::filesystem::remove(workspace_.path() / "go");

    std::set<std::string> seen;
    for (const char* name : {"pid", "net", "mnt", "ipc", "uts"}) {
      seen.insert(std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", name)).string());
    }
    for (const RunResult& result : results) {
      EXPECT_EQ(result.path, path);
      std::istringstream words(result.out.head);
      for (int i = 0; i < 5; ++i) {
        std::string name;
        words >> name;
        const std::string inode = name.substr(3);
        EXPECT_TRUE(seen.insert(name.substr(0, 3) + ":[" + inode + "]").second) << name << to_string(path);
      }
      EXPECT_NE(result.out.head.find("others [] parent 1\n"), std::string::npos)
          << to_string(path) << result.out.head << result.err.head;
    }
  }
}

TEST_F(PathsTest, NothingOfAnEarlierRunIsLeft) {
  const std::string leave =
      "import os, sys, builtins, random, subprocess, tempfile\n"
      "for place in ('/tmp', '/dev/shm', '/sandbox/home', '/sandbox/run'): open(place + '/left', "
      "'w').close()\n"
      "os.environ['LEFT'] = '1'; builtins.left = 1; sys.left = 1; sys.modules['left'] = sys; "
      "sys.path.append('/left')\n"
      "random.left = 1; os.umask(0o777); sys.setrecursionlimit(500)\n"
      "subprocess.Popen(['sleep', '60'], start_new_session=True)\n";
  const std::string look =
      "import os, sys, builtins, random\n"
      "found = [p for p in ('/tmp', '/dev/shm', '/sandbox/home', '/sandbox/run') if os.path.exists(p + "
      "'/left')]\n"
      "found += [n for n, there in (('environ', 'LEFT' in os.environ), ('builtins', hasattr(builtins, "
      "'left')),\n"
      "    ('sys', hasattr(sys, 'left')), ('modules', 'left' in sys.modules), ('path', '/left' in "
      "sys.path),\n"
      "    ('random', hasattr(random, 'left')), ('umask', os.umask(0) == 0o777),\n"
      "    ('recursion', sys.getrecursionlimit() == 500)) if there]\n"
      "print(found, len([n for n in os.listdir('/proc') if n.isdigit()]))\n";
  for (const Path path : kPaths) {
    for (std::size_t i = 0; i < kPoolSize + 1; ++i) {
      run(path, leave);
      EXPECT_EQ(run(path, look).out.head, "[] 2\n") << to_string(path);
    }
  }
}

TEST_F(PathsTest, NoTwoRunsShareARandomStream) {
  const std::string code =
      "import random, uuid, secrets, tempfile, os\n"
      "print(random.random(), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(8), tempfile.mktemp(), "
      "os.urandom(8).hex(), sep='\\n')";
  for (const Path path : {Path::fork, Path::pool}) {
    std::set<std::string> seen;
    for (int i = 0; i < 4; ++i) {
      std::istringstream lines(run(path, code).out.head);
      int count = 0;
      for (std::string line; std::getline(lines, line); ++count)
        EXPECT_TRUE(seen.insert(line).second) << line;
      EXPECT_EQ(count, 6);
    }
  }
}

TEST_F(PathsTest, ResultsAreTheSame) {
  const std::vector<std::string> programs = {
      "import sys\nprint('out')\nprint('err', file=sys.stderr)\n40 + 2",
      "def f():\n    return {}['k']\nf()",
      "x = (",
      "import sys\nsys.exit(3)",
      "import os\nprint('x', end='', flush=True)\nos._exit(5)",
      "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
      "input('more? ')",
      "import asyncio\nawait asyncio.sleep(0)\n'awaited'",
      "import os, sys\nprint(os.getcwd(), sys.path, __file__, sys.argv, os.getuid(), os.getpid() > 1, "
      "__name__)\n"
      "print(sorted(os.environ.items()))\nprint(sorted(os.listdir('.')), "
      "sorted(os.listdir('/proc/self/fd')))",
      "import sys\nprint(sorted(sys.modules))",
      "import threading, atexit\natexit.register(print, 'bye')\n"
      "threading.Thread(target=lambda: print('thread')).start()",
      "import multiprocessing as mp\ndef f(x):\n    return x * x\n"
      "if __name__ == '__main__':\n    with mp.get_context('fork').Pool(2) as p: print(p.map(f, [3, 4]))",
      "import resource, signal\nprint([resource.getrlimit(n) for n in range(16)], "
      "[signal.getsignal(n) for n in range(1, 32)])",
      "print([l for l in open('/proc/self/status') if l.startswith(('Cap', 'Seccomp:', 'NoNewPrivs', 'Uid', "
      "'Groups'))])",
      "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(1)'], "
      "capture_output=True).stdout)",
      "import socket\ntry: socket.create_connection(('10.0.0.1', 80), 1)\nexcept OSError as e: print(e)",
      "print('half', end='', flush=True)\nraise SystemExit('message')",
  };
  for (const Path path : {Path::fork, Path::pool}) {
    for (const std::string& program : programs) {
      const RunResult plain = run(Path::plain, program);
      const RunResult other = run(path, program);
      const std::string where = fmt::format("{}: {}", to_string(path), program);
      ASSERT_EQ(plain.outcome.index(), other.outcome.index()) << where << other.err.head;
      if (const auto* exited = std::get_if<sandbox::Exited>(&plain.outcome)) {
        EXPECT_EQ(exited->code, std::get<sandbox::Exited>(other.outcome).code) << where;
      }
      EXPECT_EQ(plain.out.head, other.out.head) << where;
      EXPECT_EQ(plain.err.head, other.err.head) << where;
      EXPECT_EQ(plain.value.has_value(), other.value.has_value()) << where;
      if (plain.value && other.value) EXPECT_EQ(plain.value->text, other.value->text) << where;
      EXPECT_EQ(plain.error.has_value(), other.error.has_value()) << where;
      if (plain.error && other.error) {
        EXPECT_EQ(plain.error->type, other.error->type) << where;
        EXPECT_EQ(plain.error->traceback, other.error->traceback) << where;
      }
      EXPECT_EQ(plain.note, other.note) << where;
    }
  }
}

TEST_F(PathsTest, LimitsHoldEverywhere) {
  for (const Path path : kPaths) {
    EXPECT_TRUE(std::holds_alternative<sandbox::OutOfMemory>(
        run(path, "x = bytearray(3 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1").outcome))
        << to_string(path);
    RunSpec endless = spec("while True:\n    pass");
    endless.limits.wall = Milliseconds(500);
    const auto ran = stage_->loop.run_until_done(stage_->runner(path).run(std::move(endless), nullptr));
    ASSERT_TRUE(ran);
    EXPECT_TRUE(std::holds_alternative<sandbox::TimedOut>(ran->outcome)) << to_string(path);
    EXPECT_TRUE(ran->last_line == 1 || ran->last_line == 2);
  }
}

TEST_F(PathsTest, ARunThatBringsNoWorkspaceHasANewOne) {
  for (const Path path : kPaths) {
    for (int time = 0; time < 2; ++time) {
      RunSpec spec = this->spec("import os\nprint(os.getcwd(), os.listdir())\nopen('mine', 'w').write('x')");
      spec.workspace.reset();
      const auto ran = stage_->loop.run_until_done(stage_->runner(path).run(std::move(spec), nullptr));
      ASSERT_TRUE(ran) << ran.error().message;
      EXPECT_EQ(ran->out.head, "/sandbox/data []\n") << to_string(path);
      EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(ran->workspace.directory) / "mine"));
      EXPECT_NE(ran->workspace.directory, workspace_.path());
    }
  }
}

TEST_F(PathsTest, CancelledBeforeItBeginsRunsNothing) {
  for (const Path path : kPaths) {
    auto cancellation = std::make_shared<io::Cancellation>();
    cancellation->request();
    const auto ran =
        stage_->loop.run_until_done(stage_->runner(path).run(spec("open('ran', 'w')"), cancellation));
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_TRUE(std::holds_alternative<sandbox::Cancelled>(ran->outcome));
    EXPECT_FALSE(std::filesystem::exists(workspace_.path() / "ran"));
  }
}

}  // namespace
}  // namespace prims::python

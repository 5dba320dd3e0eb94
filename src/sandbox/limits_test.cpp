#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "sandbox/cgroup1.h"
#include "sandbox/cgroup1_hierarchy.h"
#include "sandbox/directory_watch.h"
#include "sandbox/limit_backend.h"
#include "sandbox/process_tree.h"
#include "sandbox/watchdog.h"

namespace prims::sandbox {
namespace {

constexpr Milliseconds kPatience{
    60'000};  // used up only when something is wrong, however busy the machine is

/// Asks again and again, as the server's loop does, until there is an answer.
template <class Ask>
auto poll_for(Ask ask, Milliseconds patience = kPatience) -> decltype(ask()) {
  const Deadline deadline = Deadline::after(patience);
  while (true) {
    if (auto answer = ask(); answer || deadline.passed()) return answer;
    ::poll(nullptr, 0, 5);
  }
}

/// A child that waits until it is let go, so that it does nothing outside its limits.
class Child {
 public:
  explicit Child(const std::function<int()>& body) {
    int barrier[2];
    EXPECT_EQ(::pipe2(barrier, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      char byte = 0;
      ::close(barrier[1]);
      if (::read(barrier[0], &byte, 1) != 1) ::_exit(77);
      ::_exit(body());
    }
    ::close(barrier[0]);
    barrier_ = UniqueFd(barrier[1]);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void go() { EXPECT_EQ(::write(barrier_.get(), "x", 1), 1); }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd barrier_;
};

void touch(void* memory, std::size_t size) {
  for (std::size_t at = 0; at < size; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
}

void* take(std::size_t size, int sharing = MAP_PRIVATE) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) touch(memory, size);
  return memory;
}

[[noreturn]] void idle() {
  while (true) ::pause();
}

[[noreturn]] void spin() {
  for (volatile unsigned n = 0;; n = n + 1) {
  }
}

/// Becomes an interpreter, whose own memory is small and the same in every build of this test.
int python(const char* code) {
  ::unsetenv("PYTHONUNBUFFERED");
  ::unsetenv("PYTHONDONTWRITEBYTECODE");
  ::execl("/usr/bin/python3", "/usr/bin/python3", "-Ic", code, nullptr);
  return 127;
}

enum class Which { cgroup1, watchdog };

class Limited : public ::testing::TestWithParam<Which> {
 protected:
  void SetUp() override {
    if (GetParam() == Which::watchdog) {
      backend_ = make_watchdog_backend();
      return;
    }
    auto made = make_cgroup1_backend();
    if (!made) GTEST_SKIP() << "no cgroup v1 for this user: " << made.error().message;
    backend_ = *std::move(made);
  }

  std::unique_ptr<LimitGroup> group(const Limits& limits) {
    return backend_->make_group("test", limits).value();
  }

  static Limits memory(Bytes bytes) {
    Limits limits;
    limits.memory = bytes;
    return limits;
  }

  /// The breach by what `body` does in a child of `limits`.
  std::optional<Outcome> breach_of(const Limits& limits, const std::function<int()>& body) {
    const auto limited = group(limits);
    Child child(body);
    EXPECT_TRUE(limited->add(child.pid()));
    child.go();
    const auto breach = poll_for([&] { return limited->breached(); });
    limited->kill_all();
    child.wait();
    return breach;
  }

  std::unique_ptr<LimitBackend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Backends, Limited, ::testing::Values(Which::cgroup1, Which::watchdog),
                         [](const auto& info) {
                           return info.param == Which::cgroup1 ? "Cgroup1" : "Watchdog";
                         });

TEST_P(Limited, MemoryOfOneProcess) {
  const auto breach = breach_of(memory(mib(64)), [] {
    while (take(1 << 20) != MAP_FAILED) {
    }
    idle();
    return 0;
  });
  ASSERT_TRUE(breach && std::holds_alternative<OutOfMemory>(*breach));
  const auto evidence = std::get<OutOfMemory>(*breach);
  EXPECT_EQ(evidence.limit, mib(64));
  EXPECT_GE(evidence.peak, mib(60));
  RecordProperty("overshoot_mib", std::to_string((evidence.peak.count >> 20) - 64));
}

TEST_P(Limited, MemoryOfAllProcessesTogether) {
  const auto breach = breach_of(memory(mib(64)), [] {
    for (int i = 0; i < 4; ++i) {
      if (::fork() == 0) {
        take(24 << 20);
        idle();
      }
    }
    idle();
    return 0;
  });
  EXPECT_TRUE(breach && std::holds_alternative<OutOfMemory>(*breach));
}

TEST_P(Limited, SharedMemoryCountsOnce) {
  const auto limited = group(memory(mib(100)));
  Child child([] {
    return python(R"(
import mmap, os, signal
def take():
    memory = mmap.mmap(-1, 60 << 20)
    for at in range(0, 60 << 20, 4096): memory[at] = 1
    return memory
first = take()
for _ in range(3):
    if os.fork() == 0: signal.pause()
os.kill(os.getpid(), signal.SIGSTOP)
second = take()
signal.pause()
)");
  });
  ASSERT_TRUE(limited->add(child.pid()));
  child.go();
  ASSERT_EQ(::waitpid(child.pid(), nullptr, WUNTRACED), child.pid());
  for (int look = 0; look < 20; ++look) {
    EXPECT_FALSE(limited->breached());
    ::poll(nullptr, 0, 10);
  }
  ::kill(child.pid(), SIGCONT);
  EXPECT_TRUE(poll_for([&] { return limited->breached(); }));
  limited->kill_all();
}

TEST_P(Limited, WhatStaysWithinItsLimitsIsLeftAlone) {
  Limits limits = memory(mib(128));
  limits.cpu_time = Milliseconds{5000};
  const auto limited = group(limits);
  Child child([] {
    return python(
        "import os, signal, sys\nkept = b'x' * (48 << 20)\nos.kill(os.getpid(), "
        "signal.SIGSTOP)\nsys.exit(7)");
  });
  ASSERT_TRUE(limited->add(child.pid()));
  child.go();
  ASSERT_EQ(::waitpid(child.pid(), nullptr, WUNTRACED), child.pid());
  const bool counted = poll_for([&] {
    EXPECT_FALSE(limited->breached());
    return limited->usage().peak_memory >= mib(48);
  });
  EXPECT_TRUE(counted);
  EXPECT_LT(limited->usage().peak_memory, mib(128));
  EXPECT_FALSE(limited->process_limit_hit());
  ::kill(child.pid(), SIGCONT);
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_FALSE(limited->breached());
}

TEST_P(Limited, PythonThatAllocatesWithoutEnd) {
  const auto breach = breach_of(memory(mib(200)), [] {
    return python("kept = []\nwhile True: kept.append(bytearray(b'x' * (1 << 20)))");
  });
  EXPECT_TRUE(breach && std::holds_alternative<OutOfMemory>(*breach));
}

TEST_P(Limited, CpuTimeOfAllProcessesTogether) {
  Limits limits;
  limits.cpu_time = Milliseconds{300};
  const auto breach = breach_of(limits, [] {
    if (::fork() == 0) spin();
    spin();
    return 0;
  });
  ASSERT_TRUE(breach && std::holds_alternative<CpuTimeExceeded>(*breach));
  EXPECT_GE(std::get<CpuTimeExceeded>(*breach).used, Milliseconds{300});
  EXPECT_LT(std::get<CpuTimeExceeded>(*breach).used, Milliseconds{5000});
}

TEST_P(Limited, CpuTimeOfChildrenThatComeAndGo) {
  Limits limits;
  limits.cpu_time = Milliseconds{300};
  const auto breach = breach_of(limits, [] {
    while (true) {
      const pid_t child = ::fork();
      if (child == 0) {
        for (volatile int n = 0; n < 1'000'000; n = n + 1) {
        }
        ::_exit(0);
      }
      ::waitpid(child, nullptr, 0);
    }
    return 0;
  });
  EXPECT_TRUE(breach && std::holds_alternative<CpuTimeExceeded>(*breach));
}

TEST_P(Limited, AForkBombIsBounded) {
  Limits limits;
  limits.processes = 20;
  const auto limited = group(limits);
  const std::vector<Rlimit> rlimits = backend_->rlimits(limits);
  Child child([&rlimits] {
    // As the launcher does: never as uid 0, limits set inside the user namespace.
    if (::getuid() == 0 && ::setuid(65533) != 0) return 1;
    if (::unshare(CLONE_NEWUSER) != 0) return 2;
    for (const Rlimit& limit : rlimits) {
      const rlimit value{limit.soft, limit.hard};
      if (::setrlimit(static_cast<__rlimit_resource>(limit.resource), &value) != 0) return 3;
    }
    int made = 0;
    while (made < 1000) {
      const pid_t pid = ::fork();
      if (pid == 0) idle();
      if (pid < 0) break;
      ++made;
    }
    ::raise(SIGSTOP);
    return made < 30 ? 100 : 4;
  });
  ASSERT_TRUE(limited->add(child.pid()));
  child.go();
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, WUNTRACED), child.pid());
  ASSERT_TRUE(WIFSTOPPED(status)) << "the child ended early: " << status;
  const auto hit = poll_for([&] {
    (void)limited->breached();
    return limited->process_limit_hit();
  });
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->limit, 20U);
  const auto processes = sample_tree(child.pid());
  EXPECT_GT(processes.size(), 15U);
  EXPECT_LE(processes.size(), 22U);
  limited->kill_all();
  child.wait();
  for (const auto& process : processes) {
    EXPECT_TRUE(poll_for([&] { return ::kill(process.pid, 0) != 0; })) << process.pid;
  }
}

TEST_P(Limited, KillAllReachesChildrenInOtherSessions) {
  const auto limited = group(Limits{});
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  Child child([&pipe] {
    for (int i = 0; i < 5; ++i) {
      if (::fork() == 0) {
        ::setsid();
        idle();
      }
    }
    (void)!::write(pipe[1], "x", 1);
    idle();
    return 0;
  });
  ASSERT_TRUE(limited->add(child.pid()));
  child.go();
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  ::close(pipe[1]);
  limited->kill_all();
  EXPECT_TRUE(WIFSIGNALED(child.wait()));
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0);  // end of file: every holder of the other end is gone
  ::close(pipe[0]);
}

TEST_P(Limited, BytesBelowADirectory) {
  char name[] = "/tmp/prims-limits-XXXXXX";
  const std::string directory = ::mkdtemp(name);
  const auto limited = group(Limits{});
  ASSERT_TRUE(limited->watch_directory({directory, mib(1)}));
  EXPECT_FALSE(limited->watch_directory({directory + "/missing", mib(1)}));
  std::filesystem::create_directories(directory + "/a/b");
  std::ofstream(directory + "/a/b/large") << std::string(2 << 20, 'x');
  const auto breach = poll_for([&] { return limited->breached(); });
  ASSERT_TRUE(breach && std::holds_alternative<DiskLimit>(*breach));
  EXPECT_EQ(std::get<DiskLimit>(*breach).limit, mib(1));
  EXPECT_GE(std::get<DiskLimit>(*breach).peak, mib(2));
  EXPECT_GE(limited->usage().disk, mib(2));
  std::filesystem::remove_all(directory);
}

TEST_P(Limited, TheLastMeasurementLeavesNoGap) {
  char name[] = "/tmp/prims-limits-XXXXXX";
  const std::string directory = ::mkdtemp(name);
  const auto limited = group(Limits{});
  EXPECT_FALSE(limited->close_directories());
  ASSERT_TRUE(limited->watch_directory({directory, mib(1)}));
  std::ofstream(directory + "/large") << std::string(2 << 20, 'x');
  const UniqueFd measured = limited->close_directories();
  pollfd source{measured.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&source, 1, static_cast<int>(kPatience.count())), 1);
  const auto breach = limited->breached();
  EXPECT_TRUE(breach && std::holds_alternative<DiskLimit>(*breach));
  EXPECT_GE(limited->usage().disk, mib(2));
  std::filesystem::remove_all(directory);
}

TEST_P(Limited, BytesOfAFileThatWasDeletedAndIsStillOpen) {
  char name[] = "/tmp/prims-limits-XXXXXX";
  const std::string directory = ::mkdtemp(name);
  const auto limited = group(Limits{});
  Child child([&directory] {
    const std::string path = directory + "/hidden";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    ::unlink(path.c_str());
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 4; ++i) (void)!::write(file, block.data(), block.size());
    idle();
    return 0;
  });
  ASSERT_TRUE(limited->add(child.pid()));
  ASSERT_TRUE(limited->watch_directory({directory, mib(2)}));
  child.go();
  const auto breach = poll_for([&] { return limited->breached(); });
  EXPECT_TRUE(breach && std::holds_alternative<DiskLimit>(*breach));
  limited->kill_all();
  child.wait();
  std::filesystem::remove_all(directory);
}

TEST(MeasureTree, CountsBlocksOfEachFileOnceAndFollowsNoLink) {
  char name[] = "/tmp/prims-tree-XXXXXX";
  const std::string tree = ::mkdtemp(name);
  std::ofstream(tree + "/file") << std::string(1 << 20, 'x');
  const Bytes plain = measure_tree(tree)->bytes;
  EXPECT_GE(plain, mib(1));
  std::filesystem::create_hard_link(tree + "/file", tree + "/same");
  std::filesystem::create_symlink("/usr", tree + "/outside");
  std::ofstream(tree + "/sparse").close();
  std::filesystem::resize_file(tree + "/sparse", 1 << 30);
  EXPECT_LT(measure_tree(tree)->bytes.count, plain.count + (64 << 10));
  std::filesystem::remove_all(tree);
}

TEST(MeasureTree, RefusesToMissWhatIsNestedTooDeep) {
  char name[] = "/tmp/prims-deep-XXXXXX";
  const std::string tree = ::mkdtemp(name);
  UniqueFd here(::open(tree.c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 2500; ++i) {
    ASSERT_EQ(::mkdirat(here.get(), "d", 0700), 0);
    here = UniqueFd(::openat(here.get(), "d", O_RDONLY | O_DIRECTORY));
  }
  EXPECT_TRUE(measure_tree(tree)->too_many);
  std::filesystem::remove_all(tree);
}

TEST(ProcessTree, ReadsNamesThatLookLikeFields) {
  Child child([] {
    ::prctl(PR_SET_NAME, ") 7 (x R 1 1", 0, 0, 0);
    ::raise(SIGSTOP);
    return 0;
  });
  child.go();
  ASSERT_EQ(::waitpid(child.pid(), nullptr, WUNTRACED), child.pid());
  const auto sample = sample_process(child.pid());
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->parent, ::getpid());
  EXPECT_GE(sample->threads, 1U);
  ASSERT_TRUE(memory_share(child.pid()));
  EXPECT_GT(memory_share(child.pid())->anonymous, Bytes{0});
}

TEST(Cgroup1Mounts, FindsSeparateAndJoinedHierarchies) {
  const auto mounts = find_cgroup1_mounts(
      "30 24 0:26 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
      "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "32 24 0:28 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
      "33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
      "4:memory:/a/b\n3:pids:/docker/abc/x\n2:cpu,cpuacct:/\n0::/\n");
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[0].own_path, "/sys/fs/cgroup/memory/a/b");
  EXPECT_EQ(mounts[1].controllers, (std::vector{Controller::cpu, Controller::cpuacct}));
  EXPECT_EQ(mounts[1].own_path, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(mounts[2].own_path, "/sys/fs/cgroup/pids/x");
}

class Cgroup1 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto made = make_cgroup1_backend(); !made) GTEST_SKIP() << "no cgroup v1: " << made.error().message;
    for (const Cgroup1Mount& mount :
         find_cgroup1_mounts(text_of("/proc/self/mountinfo"), text_of("/proc/self/cgroup"))) {
      parents_.push_back(mount.own_path);
    }
  }

  static std::string text_of(const char* path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Directories of servers with this process's id.
  std::vector<std::string> own() const {
    std::vector<std::string> found;
    const std::string prefix = fmt::format("{}{}-", kServerPrefix, ::getpid());
    for (const std::string& parent : parents_) {
      for (const auto& entry : std::filesystem::directory_iterator(parent)) {
        if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
      }
    }
    return found;
  }

  std::vector<std::string> parents_;
};

TEST_F(Cgroup1, LeavesNothingBehind) {
  EXPECT_TRUE(own().empty());
  {
    const auto backend = make_cgroup1_backend().value();
    const auto limited = backend->make_group("one", Limits{}).value();
    EXPECT_EQ(own().size(), parents_.size());
    Child child([] {
      idle();
      return 0;
    });
    ASSERT_TRUE(limited->add(child.pid()));
    child.go();
    limited->kill_all();
    child.wait();
  }
  EXPECT_TRUE(own().empty());
}

TEST_F(Cgroup1, SweepsUpAfterDeadServersOnly) {
  const auto living = make_cgroup1_backend().value();
  const auto group = living->make_group("kept", Limits{}).value();
  const std::string dead = parents_.front() + "/prims-4194305-dead";
  std::filesystem::create_directories(dead + "/s1");
  const auto another = make_cgroup1_backend().value();
  EXPECT_TRUE(poll_for([&dead] { return !std::filesystem::exists(dead); }));
  EXPECT_EQ(own().size(), 2 * parents_.size());
}

TEST_F(Cgroup1, AChildJoinsByItself) {
  const auto backend = make_cgroup1_backend().value();
  Limits limits;
  limits.memory = mib(64);
  const auto limited = backend->make_group("entries", limits).value();
  ASSERT_FALSE(limited->entries().empty());
  Child child([&limited] {
    for (const int entry : limited->entries()) {
      if (::write(entry, "0", 1) != 1) return 1;
    }
    while (take(1 << 20) != MAP_FAILED) {
    }
    return 2;
  });
  child.go();
  const auto breach = poll_for([&] { return limited->breached(); });
  EXPECT_TRUE(breach && std::holds_alternative<OutOfMemory>(*breach));
  EXPECT_TRUE(WIFSIGNALED(child.wait()));
}

TEST_F(Cgroup1, ANewGroupCountsFromTheBeginning) {
  const auto backend = make_cgroup1_backend().value();
  for (int time = 0; time < 3; ++time) {
    Limits limits;
    limits.processes = 20 + static_cast<std::uint32_t>(time % 2);
    const auto limited = backend->make_group("turn-" + std::to_string(time), limits).value();
    EXPECT_EQ(limited->usage().cpu.count(), 0);
    EXPECT_LT(limited->usage().peak_memory, mib(5));
    EXPECT_FALSE(limited->breached());
    Child child([] {
      const auto* page = static_cast<char*>(take(16 << 20));
      return page == MAP_FAILED ? 1 : 0;
    });
    ASSERT_TRUE(limited->add(child.pid()));
    child.go();
    EXPECT_EQ(WEXITSTATUS(child.wait()), 0);
    EXPECT_GE(limited->usage().peak_memory, mib(16));
  }
}

}  // namespace
}  // namespace prims::sandbox

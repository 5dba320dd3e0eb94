// What is left of sandboxes: nothing, however they, the launcher or the server end.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/event.h"
#include "io/stream.h"
#include "sandbox/test_support.h"

namespace prims::sandbox::testing {
namespace {

namespace fs = std::filesystem;

std::size_t count_descriptors() {
  return static_cast<std::size_t>(std::ranges::distance(fs::directory_iterator("/proc/self/fd")));
}

std::size_t count_cgroups() {
  std::size_t count = 0;
  const std::string ours = fmt::format("prims-{}-", ::getpid());
  for (const auto& controller : fs::directory_iterator("/sys/fs/cgroup")) {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(controller.path(), error)) {
      if (entry.path().filename().native().starts_with(ours)) ++count;
    }
  }
  return count;
}

std::size_t count_lines(const std::string& path) {
  std::ifstream file(path);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

struct Footprint {
  std::size_t descriptors = count_descriptors();
  std::size_t mounts = count_lines("/proc/self/mountinfo");
  std::size_t cgroups = count_cgroups();

  bool operator==(const Footprint&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Footprint& footprint) {
  return out << footprint.descriptors << " descriptors, " << footprint.mounts << " mounts, "
             << footprint.cgroups << " cgroups";
}

/// Processes that lose their parent become children of this one, so a process that is left over cannot hide.
enum class Orphans : unsigned long { go_to_init, come_here };
void set_orphans(Orphans where) {
  ::prctl(PR_SET_CHILD_SUBREAPER, static_cast<unsigned long>(where));
}

/// Reaps until there is no child. False when some are alive for longer than `seconds`.
bool no_process_is_left(unsigned seconds = 20) {
  struct sigaction interrupt{};
  interrupt.sa_handler = [](int) {};  // without SA_RESTART: ends the wait
  ::sigaction(SIGALRM, &interrupt, nullptr);
  ::alarm(seconds);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  const bool none = errno == ECHILD;
  ::alarm(0);
  return none;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The launcher that is a child of this process; there is one at a time in these tests.
pid_t find_launcher() {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (read_file(entry.path() / "cmdline") != std::string("prims-launcher\0", 15)) continue;
    const std::string parent = fmt::format("PPid:\t{}\n", ::getpid());
    if (read_file(entry.path() / "status").find(parent) != std::string::npos) return std::stoi(name);
  }
  return -1;
}

class LifeTest : public SandboxTest {
 protected:
  void SetUp() override { set_orphans(Orphans::come_here); }
  void TearDown() override { set_orphans(Orphans::go_to_init); }
};

io::Task<> run_some(Host& host, std::string workspace, int count, int& good) {
  for (int i = 0; i < count; ++i) {
    PrepareSpec spec{.root = minimal_root()};
    auto made = co_await host.prepare(std::move(spec));
    if (!made) co_return;
    std::vector<Attachment> attachments{{workspace, "/sandbox/data", Access::read_write}};
    auto attached = co_await (*made)->attach(std::move(attachments));
    if (!attached) co_return;
    StartSpec start;
    start.argv = {"/bin/sh", "-c", "(sleep 100 &) ; exit 7"};
    auto started = co_await (*made)->start(std::move(start));
    if (!started) co_return;
    const Outcome outcome = co_await (*made)->finish();
    const auto* exited = std::get_if<Exited>(&outcome);
    if (exited != nullptr && exited->code == 7) ++good;
  }
}

TEST_F(LifeTest, TwoHundredRunsLeaveNothingBehind) {
  const TempDir workspace(host().workspace_owner());
  run(shell("true"));  // what is made once is there
  const Footprint before;
  int good = 0;
  {
    auto host = Host::create({});
    ASSERT_TRUE(host) << host.error().message;
    io::Loop loop;
    for (int i = 0; i < 3; ++i) loop.spawn(run_some(**host, workspace.path(), 50, good), "runs");
    loop.run_until_done(run_some(**host, workspace.path(), 50, good));
    while (good < 200 && loop.context().run_one() > 0) {
    }
  }
  EXPECT_EQ(good, 200);
  EXPECT_TRUE(no_process_is_left());
  EXPECT_EQ(Footprint(), before);
}

TEST_F(LifeTest, DroppedSandboxesAreKilledAndReaped) {
  const Footprint before;
  {
    auto host = Host::create({});
    ASSERT_TRUE(host) << host.error().message;
    io::Loop loop;
    for (int i = 0; i < 3; ++i) {
      auto sandbox = loop.run_until_done((*host)->prepare({.root = minimal_root()}));
      ASSERT_TRUE(sandbox) << sandbox.error().message;
    }
  }
  EXPECT_TRUE(no_process_is_left());
  EXPECT_EQ(Footprint(), before);
}

io::Task<Result<Outcome>> lose_launcher(Host& host) {
  PrepareSpec spec{.root = minimal_root()};
  auto made = co_await host.prepare(std::move(spec));
  PRIMS_CO_ASSIGN_OR_RETURN(auto sandbox, std::move(made));
  StartSpec start;
  start.argv = {"/bin/sleep", "1000"};
  auto started = co_await sandbox->start(std::move(start));
  PRIMS_CO_RETURN_ON_ERROR(std::move(started));
  ::kill(find_launcher(), SIGKILL);
  const bool ended = co_await sandbox->ended_by(Deadline::after(Milliseconds(10'000)));
  if (!ended) co_return fail(Kind::timed_out, "the program outlived its launcher");
  co_return co_await sandbox->finish();
}

TEST_F(LifeTest, EverythingDiesWithTheLauncher) {
  const auto outcome = loop_.run_until_done(lose_launcher(host()));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(std::holds_alternative<Exited>(*outcome));
  EXPECT_TRUE(no_process_is_left());
}

constexpr const char* kVictim = "PRIMS_TEST_VICTIM";

/// The server that the next test kills. Its program writes to our standard output.
TEST_F(LifeTest, DISABLED_Victim) {
  if (std::getenv(kVictim) == nullptr) GTEST_SKIP() << "runs only below another test";
  Program program = shell("trap '' TERM INT HUP; (setsid sleep 1000 &); echo ready; sleep 1000");
  program.extra.push_back(UniqueFd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)));
  program.argv.back() = "exec >&3; " + program.argv.back();
  run(std::move(program));
}

TEST_F(LifeTest, EverythingDiesWithTheServer) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd output(ends[0]);
  const pid_t server = ::fork();
  if (server == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::setenv(kVictim, "1", 1);
    ::execl("/proc/self/exe", "sandbox_test", "--gtest_filter=LifeTest.DISABLED_Victim",
            "--gtest_also_run_disabled_tests", nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t got = 1; got > 0 && said.find("ready\n") == std::string::npos;) {
    got = ::read(output.get(), buffer, sizeof buffer);
    said.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  EXPECT_THAT(said, ::testing::HasSubstr("ready\n"));
  ::kill(server, SIGKILL);
  EXPECT_TRUE(no_process_is_left());
}

/// All of this once more without root's rights.
TEST(OrdinaryUser, PassesTheSameTests) {
  if (::geteuid() != 0) GTEST_SKIP() << "this is the ordinary user";
  constexpr uid_t kNobody = 65534;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool dropped = ::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
                         ::setresuid(kNobody, kNobody, kNobody) == 0;
    const char* environment[] = {"PATH=/usr/bin:/bin", nullptr};
    const char* arguments[] = {"sandbox_test", "--gtest_filter=SandboxTest.*:LifeTest.*", "--gtest_brief=1",
                               nullptr};
    if (dropped) ::execve("/proc/self/exe", const_cast<char**>(arguments), const_cast<char**>(environment));
    ::_exit(127);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace prims::sandbox::testing

#include "session/state.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "session/file_lock.h"
#include "session/test_directory.h"

namespace prims::session {
namespace {

Lookup environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

bool mentions(const Error& error, const std::string& text) {
  return error.message.find(text) != std::string::npos;
}

TEST(StateDirectory, FollowsTheXdgRules) {
  EXPECT_EQ(default_state_directory(environment({{"XDG_STATE_HOME", "/x"}, {"HOME", "/h"}})), "/x/prims");
  EXPECT_EQ(default_state_directory(environment({{"XDG_STATE_HOME", "relative"}, {"HOME", "/h"}})),
            "/h/.local/state/prims");
  EXPECT_EQ(default_state_directory(environment({{"HOME", "/h"}})), "/h/.local/state/prims");
  EXPECT_EQ(default_state_directory(environment({})), "/var/lib/prims");
}

TEST(State, TouchesNothingUntilItIsPrepared) {
  const TestDirectory temp;
  {
    const State state(temp.path() / "a/state");
  }
  EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
}

TEST(State, PreparesOnceAndCleansUpAfterItself) {
  const TestDirectory temp;
  const auto directory = temp.path() / "a/state";
  {
    State state(directory);
    ASSERT_TRUE(state.prepare());
    ASSERT_TRUE(state.prepare());
    for (const char* name : {"tools", "layers", "locks", "runs", "version"}) {
      EXPECT_TRUE(std::filesystem::exists(directory / name)) << name;
    }
    struct stat info{};
    ASSERT_EQ(::stat(directory.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    EXPECT_TRUE(std::filesystem::exists(state.own_runs()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory / "runs"));
}

TEST(State, ResolvesLinksInItsOwnPath) {
  const TestDirectory temp;
  std::filesystem::create_directories(temp.path() / "real");
  std::filesystem::create_directory_symlink(temp.path() / "real", temp.path() / "link");
  State state(temp.path() / "link/state");
  ASSERT_TRUE(state.prepare());
  EXPECT_EQ(state.directory(), std::filesystem::canonical(temp.path()) / "real/state");
}

TEST(State, ANewerFormatIsRefusedWithTheReason) {
  const TestDirectory temp;
  write_file(temp.path() / "version", "99\n");
  State state(temp.path());
  const auto prepared = state.prepare();
  ASSERT_FALSE(prepared);
  EXPECT_TRUE(mentions(prepared.error(), "format 99")) << prepared.error().message;
  EXPECT_TRUE(mentions(prepared.error(), "newer prims")) << prepared.error().message;
  EXPECT_TRUE(std::filesystem::is_empty(temp.path() / "runs"));
}

TEST(State, NonsenseInTheVersionFileIsRefused) {
  const TestDirectory temp;
  write_file(temp.path() / "version", "one\n");
  State state(temp.path());
  EXPECT_FALSE(state.prepare());
}

TEST(State, ErrorsNameThePathAndTheSetting) {
  const TestDirectory temp;
  write_file(temp.path() / "file", "");
  struct Row {
    std::filesystem::path path;
    const char* reason;
  };
  const Row rows[] = {{temp.path() / "file/state", "Not a directory"},
                      {temp.path() / "file", "is not a directory"},
                      {"/proc/prims-state", "/proc/prims-state"}};
  for (const Row& row : rows) {
    State state(row.path);
    const auto prepared = state.prepare();
    ASSERT_FALSE(prepared) << row.path;
    EXPECT_TRUE(mentions(prepared.error(), row.reason)) << prepared.error().message;
    EXPECT_TRUE(mentions(prepared.error(), row.path.string())) << prepared.error().message;
    EXPECT_TRUE(mentions(prepared.error(), "PRIMS_STATE_DIR")) << prepared.error().message;
  }
}

TEST(State, ADirectoryThatOthersCanWriteIsRefused) {
  const TestDirectory temp;
  ASSERT_EQ(::chmod(temp.path().c_str(), 0777), 0);
  State state(temp.path());
  const auto prepared = state.prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().kind, Kind::denied);
  EXPECT_TRUE(mentions(prepared.error(), "chmod go-w")) << prepared.error().message;
}

TEST(State, ADirectoryOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  const TestDirectory temp;
  ASSERT_EQ(::chown(temp.path().c_str(), 65534, 65534), 0);
  State state(temp.path());
  const auto prepared = state.prepare();
  ASSERT_FALSE(prepared);
  EXPECT_TRUE(mentions(prepared.error(), "belongs to another user")) << prepared.error().message;
}

TEST(State, WhatAKilledProcessLeftIsSweptAndALivingOnesIsNot) {
  const TestDirectory temp;
  State living(temp.path());
  ASSERT_TRUE(living.prepare());
  std::filesystem::create_directories(living.own_runs() / "run/output");

  const pid_t child = ::fork();
  if (child == 0) {
    State dying(temp.path());
    if (!dying.prepare()) ::_exit(1);
    std::filesystem::create_directories(dying.own_runs() / "run/output");
    write_file(dying.own_runs() / "run/output/file", "x");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  std::filesystem::create_directories(temp.path() / "runs/.removing-cut-short/0");

  State later(temp.path());
  ASSERT_TRUE(later.prepare());
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(temp.path() / "runs"),
                         std::filesystem::directory_iterator());
  };
  EXPECT_EQ(count(), 4);
  later.sweep();
  EXPECT_EQ(count(), 2);
  EXPECT_TRUE(std::filesystem::exists(living.own_runs() / "run/output"));
  const auto own = std::filesystem::directory_iterator(later.own_runs());
  EXPECT_EQ(std::distance(own, std::filesystem::directory_iterator()), 1);  // the lock
}

// Runs `body` in a child whose file systems are its own; its exit status, or nothing when this host forbids
// that.
std::optional<int> with_own_mounts(const std::function<int()>& body) {
  constexpr int kForbidden = 99;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool own =
        ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    ::_exit(own ? body() : kForbidden);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) == kForbidden) return std::nullopt;
  return WEXITSTATUS(status);
}

// 0 when preparing on a file system mounted with these options fails with `reason` and names path and
// setting.
int fails_on(const std::filesystem::path& place, unsigned long flags, const char* options,
             const char* reason) {
  if (::mount("tmpfs", place.c_str(), "tmpfs", flags, options) != 0) return 99;
  State state(place / "home/state");
  const auto prepared = state.prepare();
  if (prepared) return 1;
  for (const std::string& part : {std::string(reason), place.string(), std::string("--state-dir")}) {
    if (!mentions(prepared.error(), part)) return 2;
  }
  return 0;
}

TEST(State, AFullOrReadOnlyDiskIsSaidClearly) {
  const TestDirectory temp;
  const auto full =
      with_own_mounts([&] { return fails_on(temp.path(), 0, "nr_inodes=3", "No space left on device"); });
  if (!full) GTEST_SKIP() << "this host lets us mount nothing";
  EXPECT_EQ(*full, 0);
  EXPECT_EQ(with_own_mounts([&] { return fails_on(temp.path(), MS_RDONLY, "", "Read-only file system"); }),
            0);
}

TEST(State, ManyProcessesMayStartAtOnce) {
  const TestDirectory temp;
  std::vector<pid_t> children;
  for (int i = 0; i < 12; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      State state(temp.path() / "state");
      ::_exit(state.prepare() && std::filesystem::exists(state.own_runs()) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  State later(temp.path() / "state");
  ASSERT_TRUE(later.prepare());
  later.sweep();
  const auto left = std::filesystem::directory_iterator(temp.path() / "state/runs");
  EXPECT_EQ(std::distance(left, std::filesystem::directory_iterator()), 1);
}

TEST(FileLock, IsGivenBackWithItsDescriptor) {
  const TestDirectory temp;
  auto held = lock_file(temp.path() / "lock");
  ASSERT_TRUE(held);
  auto tried = try_lock_file(temp.path() / "lock");
  ASSERT_TRUE(tried);
  EXPECT_FALSE(tried->has_value());
  held->reset();
  tried = try_lock_file(temp.path() / "lock");
  ASSERT_TRUE(tried);
  EXPECT_TRUE(tried->has_value());
}

}  // namespace
}  // namespace prims::session

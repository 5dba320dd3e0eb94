#include "session/state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "session/file_lock.h"
#include "session/test_directory.h"

namespace prims::session {
namespace {

using testing::Test;

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

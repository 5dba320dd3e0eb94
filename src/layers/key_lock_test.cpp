#include "layers/key_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "io/loop.h"

namespace prims::layers {
namespace {

class KeyLockTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/prims-lock-XXXXXX";
    const UniqueFd made(::mkstemp(pattern.data()));
    file_ = pattern;
  }
  void TearDown() override { std::filesystem::remove(file_); }

  bool free(std::string_view key) const {
    const auto taken = KeyLock::try_take(file_, key);
    return taken.has_value() && taken->has_value();
  }

  std::filesystem::path file_;
};

TEST_F(KeyLockTest, ExcludesTheSameKeyOnly) {
  auto held = KeyLock::try_take(file_, "one");
  ASSERT_TRUE(held.has_value() && held->has_value());
  EXPECT_FALSE(free("one"));
  EXPECT_TRUE(free("two"));
  held->reset();
  EXPECT_TRUE(free("one"));
}

TEST_F(KeyLockTest, KilledHolderGivesItBack) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const auto child = ::fork();
  if (child == 0) {
    const auto held = KeyLock::try_take(file_, "one");
    const char byte = held && *held ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_FALSE(free("one"));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(free("one"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(KeyLockTest, WaitingEndsAtTheDeadline) {
  const auto held = KeyLock::try_take(file_, "one");
  io::Loop loop;
  const auto late = loop.run_until_done(KeyLock::take(file_, "one", Deadline::after(Milliseconds(20))));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind, Kind::timed_out);
  EXPECT_TRUE(
      loop.run_until_done(KeyLock::take(file_, "two", Deadline::after(Milliseconds(20)))).has_value());
}

}  // namespace
}  // namespace prims::layers

#include "layers/shelf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "layers/tree.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kFiles = 40;

class ShelfTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/prims-shelf-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(layers());
    fs::create_directories(builds());
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path layers() const { return root_ / "layers"; }
  fs::path builds() const { return root_ / "builds"; }
  Shelf shelf() const { return Shelf(layers(), builds()); }

  /// A layer of a few files, as an installer would leave it.
  static void fill(const BuildDirectory& build) {
    fs::create_directories(build.path() / "env/lib");
    for (int i = 0; i < kFiles; ++i) std::ofstream(build.path() / "env/lib" / std::to_string(i)) << i;
  }

  /// As measured, but for what it takes on the disk.
  static TreeSize size_of(const BuildDirectory& build, Bytes disk) {
    auto size = measure_tree(build.path() / "env").value_or(TreeSize{});
    size.disk = disk;
    return size;
  }

  Layer put(Shelf& shelf, const std::string& hash, Bytes size = kib(1)) const {
    auto build = BuildDirectory::create(builds());
    fill(*build);
    const auto published = shelf.publish(*build, hash, {"a==1", "b==2"}, size_of(*build, size));
    EXPECT_TRUE(published.has_value()) << published.error().message;
    return shelf.find(hash).value_or(Layer{});
  }

  std::ptrdiff_t entries(const fs::path& directory) const {
    return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
  }

  static bool complete(const Layer& layer) {
    for (int i = 0; i < kFiles; ++i) {
      std::ifstream file(layer.directory / "lib" / std::to_string(i));
      int number = -1;
      if (!(file >> number) || number != i) return false;
    }
    return true;
  }

  fs::path root_;
};

TEST_F(ShelfTest, WhatIsPublishedIsFound) {
  auto mine = shelf();
  EXPECT_FALSE(mine.find("aa").has_value());
  const auto published = put(mine, "aa");
  EXPECT_EQ(published.lock, "aa");
  EXPECT_TRUE(complete(published));
  auto others = shelf();
  const auto found = others.find("aa");
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->packages, ElementsAre("a==1", "b==2"));
  EXPECT_TRUE(complete(*found));
  EXPECT_EQ(entries(builds()), 0);
}

TEST_F(ShelfTest, SecondToPublishGetsTheFirstOnesLayer) {
  auto mine = shelf();
  const auto first = put(mine, "aa");
  const auto second = put(mine, "aa");
  EXPECT_EQ(first.directory, second.directory);
  EXPECT_TRUE(complete(second));
  EXPECT_EQ(entries(builds()), 0);
}

TEST_F(ShelfTest, CollectionRemovesTheLeastRecentlyUsedFirst) {
  auto mine = shelf();
  for (const char* hash : {"aa", "bb", "cc"}) put(mine, hash, mib(10));
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(layers() / "bb/use", now - std::chrono::hours(3));
  fs::last_write_time(layers() / "cc/use", now - std::chrono::hours(2));
  fs::last_write_time(layers() / "aa/use", now - std::chrono::hours(1));
  EXPECT_EQ(mine.collect(mib(30)), 0U);
  EXPECT_EQ(mine.collect(mib(25)), 1U);
  EXPECT_FALSE(mine.find("bb").has_value());
  EXPECT_EQ(mine.collect(mib(1)), 2U);
  EXPECT_EQ(entries(layers()), 0);
  EXPECT_EQ(entries(builds()), 0);
}

TEST_F(ShelfTest, LayerInUseIsNeverCollected) {
  auto mine = shelf();
  auto others = shelf();
  auto used = std::optional(put(mine, "aa", mib(10)));
  auto copy = others.find("aa");
  EXPECT_EQ(others.collect(Bytes{0}), 0U) << "in use twice";
  used.reset();
  EXPECT_EQ(mine.collect(Bytes{0}), 0U) << "in use by the other one";
  EXPECT_TRUE(complete(*copy));
  copy.reset();
  EXPECT_EQ(mine.collect(Bytes{0}), 1U);
}

TEST_F(ShelfTest, UseCountsAsUse) {
  auto mine = shelf();
  put(mine, "aa");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(50);
  fs::last_write_time(layers() / "aa/use", long_ago);
  std::ignore = shelf().find("aa");
  EXPECT_GT(fs::last_write_time(layers() / "aa/use"), long_ago);
}

TEST_F(ShelfTest, LayerOfAnEarlierBootIsCheckedOnce) {
  auto mine = shelf();
  put(mine, "aa");
  put(mine, "bb");
  for (const char* hash : {"aa", "bb"}) {
    const auto file = layers() / hash / "layer.json";
    std::string record;
    std::getline(std::ifstream(file), record);
    const auto at = record.find("\"boot\":\"") + 8;
    std::ofstream(file) << record.replace(at, 8, "EARLIER-");
  }
  // As after a power failure: the name is there, the content is not.
  std::ofstream(layers() / "aa/env/lib/7", std::ios::trunc);
  auto later = shelf();
  for (const char* hash : {"aa", "bb"}) {
    EXPECT_FALSE(later.find(hash).has_value()) << "not before it has been checked";
    later.check(hash);
  }
  EXPECT_FALSE(later.find("aa").has_value());
  EXPECT_FALSE(fs::exists(layers() / "aa"));
  EXPECT_TRUE(later.find("bb").has_value());
  std::string record;
  std::getline(std::ifstream(layers() / "bb/layer.json"), record);
  EXPECT_EQ(record.find("EARLIER-"), std::string::npos);
}

TEST_F(ShelfTest, DamagedRecordIsNoLayer) {
  auto mine = shelf();
  put(mine, "aa");
  std::ofstream(layers() / "aa/layer.json") << "{";
  EXPECT_FALSE(shelf().find("aa").has_value());
}

TEST_F(ShelfTest, KnownLayerIsFoundInMemoryUntilAnotherProcessRemovesIt) {
  auto mine = shelf();
  auto held = std::optional(put(mine, "aa"));
  fs::rename(layers(), root_ / "elsewhere");
  EXPECT_EQ(mine.find("aa")->packages, held->packages) << "nothing is read while a lease exists";
  fs::rename(root_ / "elsewhere", layers());
  held.reset();
  EXPECT_TRUE(mine.find("aa").has_value());
  EXPECT_EQ(shelf().collect(Bytes{0}), 1U);
  EXPECT_FALSE(mine.find("aa").has_value());
  put(mine, "aa");
  EXPECT_TRUE(complete(*mine.find("aa")));
}

TEST_F(ShelfTest, SweepRemovesOnlyWhatNobodyHolds) {
  auto held = BuildDirectory::create(builds());
  ASSERT_TRUE(held.has_value());
  const auto child = ::fork();
  if (child == 0) {
    auto build = BuildDirectory::create(builds());
    fill(*build);
    ::_exit(0);  // as kill -9: no destructor runs
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(entries(builds()), 4);
  sweep_builds(builds());
  EXPECT_EQ(entries(builds()), 2);
  EXPECT_TRUE(fs::exists(held->path()));
}

// A builder is killed at a different moment each time; whatever is found afterwards must be whole.
TEST_F(ShelfTest, KilledBuilderNeverLeavesAHalfBuiltLayer) {
  int found = 0;
  for (int round = 0; round < 200; ++round) {
    const auto hash = "round" + std::to_string(round);
    const auto child = ::fork();
    if (child == 0) {
      auto mine = shelf();
      put(mine, hash);
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(round) * 25);  // not to wait for anything, but to vary the moment
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    auto mine = shelf();
    if (const auto layer = mine.find(hash)) {
      ++found;
      ASSERT_TRUE(complete(*layer)) << "killed after " << round * 25 << " us";
    }
  }
  sweep_builds(builds());
  EXPECT_EQ(entries(builds()), 0);
  EXPECT_LT(found, 200) << "no builder was killed in time to tell anything";
}

// Builders and collectors of several processes at once: whoever holds a layer finds it whole until the end.
TEST_F(ShelfTest, ProcessesThatPublishFindAndCollectDoNotDisturbEachOther) {
  std::vector<pid_t> children;
  for (int worker = 0; worker < 4; ++worker) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    auto mine = shelf();
    bool whole = true;
    for (int round = 0; round < 60; ++round) {
      const auto hash = "h" + std::to_string((round + worker) % 3);
      auto layer = mine.find(hash);
      if (!layer) {
        auto build = BuildDirectory::create(builds());
        if (!build) ::_exit(2);
        fill(*build);
        if (!mine.publish(*build, hash, {}, size_of(*build, mib(1)))) ::_exit(3);
        layer = mine.find(hash);
        // Another process may have collected it before it was found again.
        if (!layer) continue;
      }
      mine.collect(Bytes{0});
      whole = whole && complete(*layer);
    }
    ::_exit(whole ? 0 : 1);
  }
  for (const auto child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  sweep_builds(builds());
  EXPECT_EQ(entries(builds()), 0);
}

class TreeTest : public ShelfTest {
 protected:
  Interpreter interpreter_{.executable = "/usr/bin/python3.11",
                           .version = "3.11.2",
                           .key = "k",
                           .directories = {},
                           .standard_library = {}};
};

TEST_F(TreeTest, SkeletonIsAVirtualEnvironment) {
  const auto environment = root_ / "env";
  ASSERT_TRUE(write_skeleton(environment, interpreter_, ::geteuid()).has_value());
  EXPECT_EQ(fs::read_symlink(environment / "bin/python"), "/usr/bin/python3.11");
  EXPECT_EQ(fs::read_symlink(environment / "bin/python3.11"), "python");
  EXPECT_TRUE(fs::is_directory(environment / "lib/python3.11/site-packages"));
  std::ifstream settings(environment / "pyvenv.cfg");
  std::string first;
  std::getline(settings, first);
  EXPECT_EQ(first, "home = /usr/bin");
  EXPECT_TRUE(finish_tree(environment).has_value());
}

TEST_F(TreeTest, PackagesCannotReplaceTheInterpreterOrReachThroughLinks) {
  const auto environment = root_ / "env";
  const auto victim = root_ / "victim";
  fs::create_directories(victim);
  std::ofstream(root_ / "secret") << "untouched";
  ASSERT_TRUE(write_skeleton(environment, interpreter_, ::geteuid()).has_value());
  fs::remove(environment / "pyvenv.cfg");
  fs::create_symlink(root_ / "secret", environment / "pyvenv.cfg");
  fs::remove_all(environment / "bin");
  fs::create_symlink(victim, environment / "bin");
  ASSERT_TRUE(write_interpreter_files(environment, interpreter_).has_value());
  EXPECT_TRUE(fs::is_empty(victim));
  std::string secret;
  std::ifstream(root_ / "secret") >> secret;
  EXPECT_EQ(secret, "untouched");
  EXPECT_EQ(fs::read_symlink(environment / "bin/python"), "/usr/bin/python3.11");
}

TEST_F(TreeTest, FinishingMakesATreeFitForSharing) {
  const auto environment = root_ / "env";
  ASSERT_TRUE(write_skeleton(environment, interpreter_, ::geteuid()).has_value());
  std::ofstream(environment / "bin/tool") << "x";
  ::chmod((environment / "bin/tool").c_str(), 06777);
  std::ofstream(environment / "lib/secret") << "x";
  ::chmod((environment / "lib/secret").c_str(), 0600);
  fs::create_symlink("/etc/shadow", environment / "lib/shadow");
  fs::create_symlink("../../outside", environment / "lib/outside");
  fs::create_symlink("../bin/tool", environment / "lib/inside");
  fs::create_symlink("/env/bin/tool", environment / "lib/absolute");
  ASSERT_TRUE(finish_tree(environment).has_value());
  EXPECT_EQ(fs::status(environment / "bin/tool").permissions(), fs::perms(0755));
  EXPECT_EQ(fs::status(environment / "lib/secret").permissions(), fs::perms(0644));
  EXPECT_FALSE(fs::is_symlink(environment / "lib/shadow"));
  EXPECT_FALSE(fs::is_symlink(environment / "lib/outside"));
  EXPECT_TRUE(fs::is_symlink(environment / "lib/inside"));
  EXPECT_TRUE(fs::is_symlink(environment / "lib/absolute"));
  ASSERT_EQ(::mkfifo((environment / "lib/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(finish_tree(environment).has_value());
}

}  // namespace
}  // namespace prims::layers

#include "base/empty_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"

namespace prims {
namespace {

namespace fs = std::filesystem;

class EmptyTreeTest : public ::testing::Test {
 protected:
  EmptyTreeTest() : top_(fs::temp_directory_path() / ("prims-test-" + random_token())) {
    fs::create_directories(top_ / "output");
  }
  ~EmptyTreeTest() override { fs::remove_all(top_); }

  EmptyTree tree() const { return EmptyTree::of({top_, top_ / "output"}).value(); }
  /// When file times are surely later than those of the directories.
  static Clock::time_point later() { return Clock::now() + std::chrono::seconds(1); }

  fs::path top_;
};

TEST_F(EmptyTreeTest, IsUntouchedUntilSomethingIsPutThere) {
  const EmptyTree tree = this->tree();
  EXPECT_TRUE(tree.untouched_since(later()));
  // The clock of the file system goes in steps; this one has certainly gone on when a file's time has.
  const auto made = fs::last_write_time(top_ / "output");
  do {
    std::ofstream(top_ / "output" / "plot.png") << "x";
    if (fs::last_write_time(top_ / "output") == made) fs::remove(top_ / "output" / "plot.png");
  } while (fs::last_write_time(top_ / "output") == made);
  EXPECT_FALSE(tree.untouched_since(later()));
  fs::remove(top_ / "output" / "plot.png");
  fs::last_write_time(top_ / "output", made);
  EXPECT_FALSE(tree.untouched_since(later())) << "a time that was set back hides nothing";
}

TEST_F(EmptyTreeTest, DoesNotTrustTimesThatAreTooClose) {
  const auto before = Clock::now();
  EXPECT_FALSE(tree().untouched_since(before));
  EXPECT_FALSE(tree().untouched_since(Clock::now()));
}

TEST_F(EmptyTreeTest, NoticesAnotherDirectoryInItsPlace) {
  const EmptyTree tree = this->tree();
  fs::rename(top_ / "output", top_ / "elsewhere");
  fs::create_directory(top_ / "output");
  EXPECT_FALSE(tree.untouched_since(later()));
}

TEST_F(EmptyTreeTest, RefusesWhatIsNoDirectory) {
  std::ofstream(top_ / "file") << "x";
  EXPECT_FALSE(EmptyTree::of({top_ / "file"}));
  EXPECT_FALSE(EmptyTree::of({top_ / "missing"}));
}

}  // namespace
}  // namespace prims

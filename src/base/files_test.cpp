#include "base/files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace prims {
namespace {

namespace fs = std::filesystem;

class ReplaceFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/prims-files-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  }
  static std::string content(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path directory_;
};

TEST_F(ReplaceFileTest, OldContentGivesWayToAllOfTheNew) {
  const auto file = directory_ / "file";
  std::ofstream(file) << "something longer";
  ASSERT_TRUE(replace_file(file, "new").has_value());
  EXPECT_EQ(content(file), "new");
  EXPECT_EQ(entries(), 1);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ReplaceFileTest, FailureNamesItsReasonAndLeavesNothing) {
  fs::create_directories(directory_ / "taken/by");
  EXPECT_FALSE(replace_file(directory_ / "taken", "text").has_value());
  EXPECT_EQ(entries(), 1) << "no temporary file stays";
  const auto failed = replace_file(directory_ / "absent/file", "text");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().kind, Kind::not_found);
}

}  // namespace
}  // namespace prims

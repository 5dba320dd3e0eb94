#include "session/artifacts.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <iterator>

#include "base/text.h"
#include "session/mime.h"
#include "session/test_directory.h"

namespace prims::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ArtifactsTest : public testing::Test {
 protected:
  ArtifactsTest() { std::filesystem::create_directories(output_); }

  std::vector<std::string> changed_since(const Snapshot& before) const {
    std::vector<std::string> paths;
    for (const Artifact& file : changed_files(output_, before).files) paths.push_back(file.relative_path);
    return paths;
  }

  TestDirectory temp_;
  std::filesystem::path output_ = temp_.path() / "output";
};

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(ArtifactsTest, ListsWhatIsThereWithSizeAndType) {
  std::filesystem::create_directories(output_ / "charts/q1");
  write_file(output_ / "charts/q1/plot.PNG", "12345");
  write_file(output_ / "table.csv", "a,b\n");
  const Artifacts found = changed_files(output_, {});
  ASSERT_EQ(found.files.size(), 2u);
  EXPECT_EQ(found.files[0].relative_path, "charts/q1/plot.PNG");
  EXPECT_EQ(found.files[0].name, "plot.PNG");
  EXPECT_EQ(found.files[0].size, 5u);
  EXPECT_EQ(found.files[0].mime, "image/png");
  EXPECT_EQ(found.files[1].mime, "text/csv");
  EXPECT_EQ(found.incomplete, "");
}

TEST_F(ArtifactsTest, OnlyWhatThisRunMadeOrChanged) {
  for (const char* name : {"same", "grown", "replaced", "rewritten", "moved"})
    write_file(output_ / name, "old");
  const Snapshot before = take_snapshot(output_);
  EXPECT_THAT(changed_since(before), IsEmpty());
  write_file(output_ / "new", "x");
  write_file(output_ / "grown", "longer");
  write_file(output_ / "fresh", "old");
  std::filesystem::rename(output_ / "fresh", output_ / "replaced");
  std::filesystem::rename(output_ / "moved", output_ / "moved2");
  EXPECT_THAT(changed_since(before), ElementsAre("grown", "moved2", "new", "replaced"));
}

TEST_F(ArtifactsTest, SettingTimesBackHidesNoChange) {
  write_file(output_ / "file", "old");
  struct stat info{};
  ASSERT_EQ(::stat((output_ / "file").c_str(), &info), 0);
  Snapshot before = take_snapshot(output_);
  before["file"].changed_ns -= 1;  // as if made earlier than this tick of the kernel's clock
  write_file(output_ / "file", "new");
  const timespec times[2] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, (output_ / "file").c_str(), times, 0), 0);
  EXPECT_THAT(changed_since(before), ElementsAre("file"));
}

TEST_F(ArtifactsTest, LinksPipesAndDirectoriesAreNotArtifacts) {
  std::filesystem::create_symlink("/etc/passwd", output_ / "passwd");
  std::filesystem::create_directory_symlink("/etc", output_ / "etc");
  std::filesystem::create_directories(output_ / "empty");
  ASSERT_EQ(::mkfifo((output_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(changed_since({}), IsEmpty());
}

TEST_F(ArtifactsTest, AReplacedOutputDirectoryIsNotFollowed) {
  std::filesystem::remove(output_);
  std::filesystem::create_directory_symlink("/etc", output_);
  EXPECT_THAT(changed_since({}), IsEmpty());
  std::filesystem::remove(output_);
  EXPECT_THAT(changed_since({}), IsEmpty());
}

TEST_F(ArtifactsTest, OddNamesBecomeValidText) {
  write_file(output_ / "bad\xFFname.txt", "x");
  write_file(output_ / "new\nline", "x");
  const Artifacts found = changed_files(output_, {});
  ASSERT_EQ(found.files.size(), 2u);
  for (const Artifact& file : found.files) {
    EXPECT_TRUE(is_utf8(file.name));
    EXPECT_TRUE(is_utf8(file.relative_path));
  }
  EXPECT_EQ(found.files[0].relative_path, "bad\xEF\xBF\xBDname.txt");
  EXPECT_EQ(found.files[0].path, "bad\xFFname.txt");
}

TEST_F(ArtifactsTest, EachLimitIsNamedWhenItIsHit) {
  for (int i = 0; i < 20; ++i) write_file(output_ / std::to_string(i), "");
  std::filesystem::create_directories(output_ / "a/b/c/d");
  EXPECT_THAT(changed_files(output_, {}, {.listed = 5}).incomplete, HasSubstr("more than 5 files"));
  EXPECT_EQ(changed_files(output_, {}, {.listed = 5}).files.size(), 5u);
  EXPECT_THAT(changed_files(output_, {}, {.visited = 7}).incomplete, HasSubstr("first 7 directory entries"));
  EXPECT_THAT(changed_files(output_, {}, {.depth = 2}).incomplete, HasSubstr("deeper than 2"));
  EXPECT_EQ(changed_files(output_, {}).incomplete, "");
}

TEST_F(ArtifactsTest, CopiesKeepTheirPathsAndStopAtTheLimit) {
  std::filesystem::create_directories(output_ / "sub");
  write_file(output_ / "sub/a.txt", "hello");
  write_file(output_ / "b\xFF", "x");
  const auto files = changed_files(output_, {}).files;
  const auto copy = temp_.path() / "made/copy";
  ASSERT_TRUE(copy_artifacts(output_, files, copy, kib(1)));
  EXPECT_EQ(read_file(copy / "sub/a.txt"), "hello");
  EXPECT_EQ(read_file(copy / "b\xFF"), "x");
  const auto limited = copy_artifacts(output_, files, temp_.path() / "limited", Bytes{3});
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().kind, Kind::exhausted);
}

TEST_F(ArtifactsTest, CopyingFollowsNoLinkInTheDestination) {
  std::filesystem::create_directories(output_ / "sub");
  write_file(output_ / "sub/a.txt", "hello");
  const auto copy = temp_.path() / "copy";
  std::filesystem::create_directories(copy);
  std::filesystem::create_directories(temp_.path() / "elsewhere");
  std::filesystem::create_directory_symlink(temp_.path() / "elsewhere", copy / "sub");
  EXPECT_FALSE(copy_artifacts(output_, changed_files(output_, {}).files, copy, kib(1)));
  EXPECT_TRUE(std::filesystem::is_empty(temp_.path() / "elsewhere"));
}

TEST(MimeType, BySuffixInAnyCase) {
  EXPECT_EQ(mime_type("a.b.Jpeg"), "image/jpeg");
  EXPECT_EQ(mime_type("data.7z"), "application/x-7z-compressed");
  EXPECT_EQ(mime_type("x.zip"), "application/zip");
  for (const char* name : {"noext", ".png", "x.", "x.unknown", ""}) {
    EXPECT_EQ(mime_type(name), "application/octet-stream") << name;
  }
}

}  // namespace
}  // namespace prims::session

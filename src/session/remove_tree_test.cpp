#include "session/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "session/test_directory.h"

namespace prims::session {
namespace {

// A chain far longer than PATH_MAX and than the limit of open files.
void make_chain(const std::filesystem::path& root, int depth) {
  UniqueFd at(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string name(100, 'd');
  for (int i = 0; i < depth; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
    ASSERT_GE(UniqueFd(::openat(at.get(), "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).get(), 0);
    UniqueFd next(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(next);
    at = std::move(next);
  }
}

// What a hostile guest leaves: every kind of entry, odd names, directories that nobody may read or write.
void make_hostile_tree(const std::filesystem::path& tree, const std::filesystem::path& outside) {
  std::filesystem::create_directories(tree / "closed/inner/leaf");
  std::filesystem::create_directories(tree / "readonly/inner");
  write_file(tree / "closed/inner/file", "x");
  write_file(tree / "readonly/inner/file", "x");
  for (const char* name : {"new\nline", "-rf", "\xFF\xFE", "a*b", " "}) write_file(tree / name, "x");
  std::filesystem::create_directories(tree / std::string(255, 'n'));
  std::filesystem::create_directory_symlink(outside, tree / "link_to_directory");
  std::filesystem::create_symlink(outside / "kept", tree / "link_to_file");
  std::filesystem::create_symlink("/absent", tree / "dangling");
  ::mkfifo((tree / "fifo").c_str(), 0);
  ::chmod((tree / "closed/inner").c_str(), 0);
  ::chmod((tree / "closed").c_str(), 0);
  ::chmod((tree / "readonly/inner").c_str(), 0500);
  ::chmod((tree / "readonly").c_str(), 0500);
}

TEST(RemoveTree, LeavesNothingOfAHostileTreeAndFollowsNoLink) {
  const TestDirectory temp;
  const auto outside = temp.path() / "outside";
  std::filesystem::create_directories(outside);
  write_file(outside / "kept", "kept");
  make_hostile_tree(temp.path() / "parent", outside);
  const auto tree = temp.path() / "work/tree";
  std::filesystem::create_directories(temp.path() / "work");
  std::filesystem::rename(temp.path() / "parent", tree);

  EXPECT_TRUE(remove_tree(tree));
  EXPECT_TRUE(std::filesystem::is_empty(temp.path() / "work"));
  EXPECT_TRUE(std::filesystem::exists(outside / "kept"));
}

TEST(RemoveTree, AnOrdinaryUserRemovesWhatItCannotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other test covers this when it runs as an ordinary user";
  const TestDirectory temp;
  ASSERT_EQ(::chown(temp.path().c_str(), 65534, 65534), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    make_hostile_tree(temp.path() / "tree", "/etc");
    ::_exit(remove_tree(temp.path() / "tree") && std::filesystem::is_empty(temp.path()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(RemoveTree, DepthIsNoProblem) {
  const TestDirectory temp;
  const auto tree = temp.path() / "tree";
  std::filesystem::create_directories(tree);
  make_chain(tree, 3000);
  EXPECT_TRUE(remove_tree(tree));
  EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
}

TEST(RemoveTree, ManyFilesAndManyDirectories) {
  const TestDirectory temp;
  const auto tree = temp.path() / "tree";
  std::filesystem::create_directories(tree);
  for (int i = 0; i < 5000; ++i) write_file(tree / ("f" + std::to_string(i)), "");
  for (int i = 0; i < 1000; ++i) std::filesystem::create_directories(tree / ("d" + std::to_string(i)) / "e");
  EXPECT_TRUE(remove_tree(tree));
  EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
}

TEST(RemoveTree, ALinkInPlaceOfTheTreeGoesAndItsTargetStays) {
  const TestDirectory temp;
  std::filesystem::create_directories(temp.path() / "target/inner");
  std::filesystem::create_directory_symlink(temp.path() / "target", temp.path() / "tree");
  EXPECT_TRUE(remove_tree(temp.path() / "tree"));
  EXPECT_TRUE(std::filesystem::exists(temp.path() / "target/inner"));
  EXPECT_FALSE(std::filesystem::is_symlink(temp.path() / "tree"));
}

TEST(RemoveTree, NothingThereIsSuccess) {
  const TestDirectory temp;
  EXPECT_TRUE(remove_tree(temp.path() / "absent"));
  EXPECT_TRUE(remove_tree(temp.path() / "absent/deeper"));
}

}  // namespace
}  // namespace prims::session

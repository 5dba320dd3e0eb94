#include "session/confined.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "session/test_directory.h"

namespace prims::session {
namespace {

class ConfinedTest : public testing::Test {
 protected:
  ConfinedTest() {
    std::filesystem::create_directories(root_ / "sub");
    std::filesystem::create_directories(temp_.path() / "root2");
    write_file(root_ / "plain.txt", "hello");
    write_file(root_ / "sub/deep.txt", "deep");
    write_file(temp_.path() / "secret", "secret");
    write_file(temp_.path() / "root2/sibling", "secret");
    std::filesystem::create_symlink("/etc/passwd", root_ / "link");
    std::filesystem::create_symlink("plain.txt", root_ / "inner_link");
    std::filesystem::create_symlink("..", root_ / "up");
    std::filesystem::create_symlink("sub", root_ / "sub_link");
    ::mkfifo((root_ / "fifo").c_str(), 0600);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (root_ / "socket").c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(fd);
  }

  Confined open() const {
    auto opened = Confined::open(root_);
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }

  TestDirectory temp_;
  std::filesystem::path root_ = temp_.path() / "root";
};

TEST_F(ConfinedTest, OpensRegularFilesAtAnyDepth) {
  const Confined confined = open();
  for (const char* path : {"plain.txt", "sub/deep.txt", "./plain.txt", "sub/../plain.txt"}) {
    EXPECT_TRUE(confined.open_file(path)) << path;
  }
}

TEST_F(ConfinedTest, RefusesEveryWayOutAndEverythingThatIsNotAFile) {
  const Confined confined = open();
  struct Row {
    const char* path;
    Kind kind;
  };
  const Row rows[] = {
      {"/etc/passwd", Kind::denied},
      {"../secret", Kind::denied},
      {"../root2/sibling", Kind::denied},
      {"sub/../../secret", Kind::denied},
      {"link", Kind::denied},
      {"inner_link", Kind::denied},
      {"up/secret", Kind::denied},
      {"sub_link/deep.txt", Kind::denied},
      {"fifo", Kind::invalid_input},
      {"socket", Kind::invalid_input},
      {"sub", Kind::invalid_input},
      {".", Kind::invalid_input},
      {"", Kind::invalid_input},
      {"absent", Kind::not_found},
      {"plain.txt/x", Kind::invalid_input},
  };
  for (const Row& row : rows) {
    const auto got = confined.open_file(row.path);
    ASSERT_FALSE(got) << row.path;
    EXPECT_EQ(got.error().kind, row.kind) << row.path << ": " << got.error().message;
  }
  EXPECT_FALSE(confined.open_file(std::string_view("plain.txt\0x", 11)));
  EXPECT_FALSE(confined.open_file(std::string(5000, 'x')));
}

TEST_F(ConfinedTest, ListsDirectoriesButNotThroughLinks) {
  const Confined confined = open();
  EXPECT_TRUE(confined.open_directory("."));
  EXPECT_TRUE(confined.open_directory("sub"));
  for (const char* path : {"..", "up", "sub_link", "/", "plain.txt"}) {
    EXPECT_FALSE(confined.open_directory(path)) << path;
  }
}

TEST_F(ConfinedTest, ARootThatBecameALinkIsRefused) {
  std::filesystem::create_directory_symlink(root_, temp_.path() / "swapped");
  EXPECT_FALSE(Confined::open(temp_.path() / "swapped"));
}

}  // namespace
}  // namespace prims::session

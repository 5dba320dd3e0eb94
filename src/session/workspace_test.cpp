#include "session/workspace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/loop.h"
#include "session/test_directory.h"

namespace prims::session {
namespace {

class WorkspaceTest : public testing::Test {
 protected:
  WorkspaceTest() { EXPECT_TRUE(state_.prepare()); }

  TestDirectory temp_;
  State state_{temp_.path() / "state"};
};

TEST_F(WorkspaceTest, HasItsDirectoriesAndItsOwnerBeforeTheCodeStarts) {
  const uid_t owner = ::geteuid() == 0 ? 200000 : ::geteuid();
  const auto workspace = Workspace::create(state_, owner);
  ASSERT_TRUE(workspace);
  for (const auto& path :
       {(*workspace)->directory(), (*workspace)->output(), (*workspace)->directory() / "mounts"}) {
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_uid, owner);
    EXPECT_EQ(info.st_mode & 07777U, 0700U);
  }
}

TEST_F(WorkspaceTest, TwoAreNeverTheSame) {
  const auto first = Workspace::create(state_, ::geteuid());
  const auto second = Workspace::create(state_, ::geteuid());
  ASSERT_TRUE(first && second);
  EXPECT_NE((*first)->directory(), (*second)->directory());
}

TEST_F(WorkspaceTest, IsRemovedOffTheLoop) {
  io::Loop loop;
  io::Workers workers;
  auto workspace = Workspace::create(state_, ::geteuid());
  ASSERT_TRUE(workspace);
  const auto directory = (*workspace)->directory();
  write_file((*workspace)->output() / "file", "x");
  EXPECT_TRUE(loop.run_until_done((*workspace)->remove(&workers)));
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(WorkspaceTest, GoesWithItsOwnerAtTheLatest) {
  std::filesystem::path directory;
  {
    const auto workspace = Workspace::create(state_, ::geteuid());
    ASSERT_TRUE(workspace);
    directory = (*workspace)->directory();
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace prims::session

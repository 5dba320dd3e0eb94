#include "sandbox/uid_pool.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <vector>

namespace prims::sandbox {
namespace {

class UidPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/prims-uids-XXXXXX";
    directory_ = ::mkdtemp(name);
    lock_file_ = directory_ + "/below/uids";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  UidPool open(uid_t first, std::uint32_t count) { return UidPool::open(first, count, lock_file_).value(); }

  std::string directory_;
  std::string lock_file_;
};

TEST_F(UidPoolTest, LeasesEveryUidOnceButTheFirst) {
  UidPool pool = open(200000, 4);
  EXPECT_EQ(pool.workspace_owner(), 200000U);
  std::vector<UidLease> leases;
  std::set<uid_t> uids;
  for (int i = 0; i < 3; ++i) {
    leases.push_back(pool.lease().value());
    uids.insert(leases.back().uid());
  }
  EXPECT_EQ(uids, (std::set<uid_t>{200001, 200002, 200003}));
  const auto refused = pool.lease();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::exhausted);
  leases.erase(leases.begin());
  EXPECT_EQ(pool.lease().value().uid(), 200001U);
}

TEST_F(UidPoolTest, DoesNotGiveAUidAgainAtOnce) {
  UidPool pool = open(200000, 4);
  const uid_t first = pool.lease().value().uid();
  EXPECT_NE(pool.lease().value().uid(), first);
}

TEST_F(UidPoolTest, TwoServersNeverHoldTheSameUid) {
  UidPool one = open(200000, 3);
  UidPool other = open(200000, 3);
  const UidLease a = one.lease().value();
  const UidLease b = other.lease().value();
  EXPECT_NE(a.uid(), b.uid());
  EXPECT_FALSE(one.lease());
  EXPECT_FALSE(other.lease());
}

TEST_F(UidPoolTest, RangesMayOverlap) {
  UidPool one = open(200000, 3);
  UidPool other = open(200001, 3);
  const UidLease a = one.lease().value();
  const UidLease b = one.lease().value();
  EXPECT_EQ(other.lease().value().uid(), 200003U);
}

TEST_F(UidPoolTest, AServerThatDiesGivesItsUidsBack) {
  int ready[2];
  int end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    UidPool pool = open(200000, 2);
    const UidLease lease = pool.lease().value();
    char byte = 'x';
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(end[0], &byte, 1);
    ::_exit(0);  // without giving anything back
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  UidPool pool = open(200000, 2);
  EXPECT_FALSE(pool.lease());
  ASSERT_EQ(::write(end[1], &byte, 1), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(pool.lease());
  for (const int fd : {ready[0], ready[1], end[0], end[1]}) ::close(fd);
}

TEST_F(UidPoolTest, RefusesRangesThatHoldOtherAccounts) {
  EXPECT_FALSE(UidPool::open(0, 100, lock_file_));
  EXPECT_FALSE(UidPool::open(999, 100, lock_file_));
  EXPECT_FALSE(UidPool::open(200000, 1, lock_file_));
  EXPECT_FALSE(UidPool::open(65000, 1000, lock_file_));
  EXPECT_FALSE(UidPool::open(4294967000U, 400, lock_file_));
}

}  // namespace
}  // namespace prims::sandbox

#include "sandbox/examine.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "sandbox/trial.h"
#include "sandbox/walls.h"

namespace prims::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Finding& named(const std::vector<Finding>& findings, const std::string& name) {
  return *std::ranges::find(findings, name, &Finding::name);
}

TEST(Examine, EveryFindingSaysWhatWasTriedAndWhatToChange) {
  const auto findings = examine(HostOptions{});
  EXPECT_GE(findings.size(), 13U);
  for (const Finding& finding : findings) {
    EXPECT_THAT(finding.attempt, Not(IsEmpty())) << finding.name;
    EXPECT_THAT(finding.detail, Not(IsEmpty())) << finding.name;
    EXPECT_EQ(finding.fix.empty(), finding.holds) << finding.name << ": " << finding.fix;
  }
}

TEST(Examine, LeavesThisProcessAsItWas) {
  const auto user_namespace = [] {
    char target[64] = {};
    EXPECT_GT(::readlink("/proc/self/ns/user", target, sizeof target - 1), 0);
    return std::string(target);
  };
  const std::string before = user_namespace();
  const uid_t uid = ::getuid();
  (void)examine(HostOptions{});
  EXPECT_EQ(user_namespace(), before);
  EXPECT_EQ(::getuid(), uid);
}

TEST(Examine, TierFollowsWhatHolds) {
  std::vector<Finding> findings{{.name = "user namespaces", .holds = true},
                                {.name = "seccomp", .holds = true},
                                {.name = "Landlock", .holds = true},
                                {.name = "cgroup v1", .holds = true},
                                {.name = "cgroup v2", .holds = false}};
  EXPECT_EQ(tier_of(findings), Tier::full);
  EXPECT_THAT(what_to_change(findings), IsEmpty());
  findings[3] = {.name = "cgroup v1", .holds = false, .detail = "read-only", .fix = "run as root"};
  EXPECT_EQ(tier_of(findings), Tier::namespaces);
  EXPECT_THAT(what_to_change(findings), HasSubstr("run as root"));
  findings[1] = {.name = "seccomp", .holds = false, .detail = "seccomp: refused", .fix = "another kernel"};
  EXPECT_EQ(tier_of(findings), Tier::none);
  EXPECT_EQ(what_to_change(findings), "seccomp: another kernel (seccomp: refused)");
  EXPECT_EQ(tier_of({}), Tier::none);
}

/// In a user namespace of its own, where it may change the sysctl that counts.
Attempt examine_without_user_namespaces() {
  if (::unshare(CLONE_NEWUSER) != 0) return std::unexpected(FailedStep{"unshare", errno});
  std::ofstream("/proc/sys/user/max_user_namespaces") << 0 << std::flush;
  const auto findings = examine(HostOptions{});
  const Finding& finding = named(findings, "user namespaces");
  if (finding.holds) return std::unexpected(FailedStep{"still holds", 0});
  if (finding.fix.find("user.max_user_namespaces") == std::string::npos)
    return std::unexpected(FailedStep{finding.fix, 0});
  if (tier_of(findings) != Tier::none) return std::unexpected(FailedStep{"tier", 0});
  if (what_to_change(findings).find("sysctl -w") == std::string::npos) {
    return std::unexpected(FailedStep{what_to_change(findings), 0});
  }
  return {};
}

TEST(Examine, NamesTheSysctlThatForbidsUserNamespaces) {
  const Attempt attempt = try_in_child(examine_without_user_namespaces);
  if (!attempt && attempt.error().step == "unshare") GTEST_SKIP() << "no user namespaces here at all";
  EXPECT_TRUE(attempt) << attempt.error().step;
}

TEST(Examine, AUidThatThisContainerDoesNotHaveIsNamed) {
  const bool root = ::geteuid() == 0;
  const std::string fix = wall_behind({"write /proc/7/uid_map", EPERM});
  EXPECT_EQ(fix.find("first_uid") != std::string::npos, root) << fix;
}

TEST(Trial, AChildThatDiesHasFailed) {
  const Attempt attempt = try_in_child([]() -> Attempt { ::_exit(0); });
  ASSERT_FALSE(attempt);
  EXPECT_THAT(attempt.error().step, HasSubstr("survive"));
}

}  // namespace
}  // namespace prims::sandbox

#include "layers/uv_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "layers/interpreter.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class UvToolTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/prims-uv-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    for (const char* name : {"tools", "builds", "program/bin", "program/share/prims"}) {
      fs::create_directories(root_ / name);
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(UvToolTest, WheelWithAnotherHashIsRefused) {
  for (const char* place : {"program/bin", "program/share/prims"}) {
    const auto wheel = root_ / place / std::string(uv_wheel());
    std::ofstream(wheel) << "not what was pinned";
    const auto refused = ensure_uv(root_, {}, root_ / "program/bin");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, Kind::denied);
    EXPECT_THAT(refused.error().message, HasSubstr("wrong SHA-256"));
    EXPECT_TRUE(fs::is_empty(root_ / "tools"));
    EXPECT_TRUE(fs::is_empty(root_ / "builds"));
    fs::remove(wheel);
  }
}

TEST_F(UvToolTest, WhatIsThereIsUsed) {
  const auto folder = root_ / "tools" / ("uv-" + std::string(uv_version()));
  fs::create_directories(folder);
  std::ofstream(folder / "uv") << "x";
  fs::permissions(folder / "uv", fs::perms(0755));
  EXPECT_EQ(ensure_uv(root_, {}, {}).value_or(""), folder / "uv");
  EXPECT_EQ(uv_if_there(root_), folder / "uv");
}

TEST_F(UvToolTest, WithoutPipTheErrorNamesTheWheel) {
  const auto failed = ensure_uv(root_, Interpreter{.executable = "/bin/false"}, {});
  ASSERT_FALSE(failed.has_value());
  EXPECT_THAT(failed.error().message, HasSubstr(std::string(uv_wheel())));
}

}  // namespace
}  // namespace prims::layers

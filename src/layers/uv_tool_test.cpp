#include "layers/uv_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "io/loop.h"
#include "io/workers.h"

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

  Result<fs::path> ensure(UvSource source) {
    return loop_.run_until_done(ensure_uv(std::move(source), &workers_));
  }

  /// An interpreter whose `pip download` does what the script says.
  Interpreter with_pip(const std::string& script) const {
    const auto program = root_ / "python";
    std::ofstream(program) << "#!/bin/sh\n[ \"$4\" = --version ] && exit 0\n" << script << "\n";
    fs::permissions(program, fs::perms(0755));
    return {.executable = program.string()};
  }

  fs::path root_;
  io::Loop loop_;
  io::Workers workers_{1};
};

TEST_F(UvToolTest, WheelWithAnotherHashIsRefused) {
  for (const char* place : {"program/bin", "program/share/prims"}) {
    const auto wheel = root_ / place / std::string(uv_wheel());
    std::ofstream(wheel) << "not what was pinned";
    const auto refused = ensure({.state = root_, .program_directory = root_ / "program/bin"});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, Kind::invalid_input);
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
  EXPECT_EQ(ensure({.state = root_}).value_or(""), folder / "uv");
  EXPECT_EQ(uv_if_there(root_), folder / "uv");
}

TEST_F(UvToolTest, WithoutPipTheErrorNamesTheWheel) {
  const auto failed = ensure({.state = root_, .interpreter = {.executable = "/bin/false"}});
  ASSERT_FALSE(failed.has_value());
  EXPECT_THAT(failed.error().message, HasSubstr(std::string(uv_wheel())));
}

TEST_F(UvToolTest, PipAsksTheConfiguredIndexesAndErrorsHideTheirCredentials) {
  const auto failed = ensure({.state = root_,
                              .interpreter = with_pip("echo $PIP_INDEX_URL below:${PIP_INDEX_URL}uv/ "
                                                      "$PIP_EXTRA_INDEX_URL >&2; exit 1"),
                              .index_url = "https://ann:secret@index.example/simple/",
                              .extra_index_urls = {"http://one.example/", "http://bob:word@two.example/"}});
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().kind, Kind::unavailable);
  EXPECT_THAT(failed.error().message,
              HasSubstr("https://index.example/simple/ below:https://index.example/simple/uv/ "
                        "http://one.example/ http://two.example/"));
}

TEST_F(UvToolTest, FullFileSystemIsNotBlamedOnTheNetwork) {
  const auto failed =
      ensure({.state = root_,
              .interpreter = with_pip("echo 'OSError: [Errno 28] No space left on device' >&2; exit 1")});
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().kind, Kind::exhausted);
}

}  // namespace
}  // namespace prims::layers

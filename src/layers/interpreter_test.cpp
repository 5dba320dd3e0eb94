#include "layers/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace prims::layers {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kSystemPath = "/usr/bin:/bin";

class InterpreterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/prims-interpreter-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    auto found = find_interpreter({.choice = "", .path = kSystemPath, .home = "", .pyenv_root = ""});
    if (!found) GTEST_SKIP() << "no usable python3 in /usr/bin: " << found.error().message;
    system_ = *std::move(found);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void write_program(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    ::chmod((directory_ / name).c_str(), 0755);
  }

  Result<Interpreter> find(const std::string& choice, const std::string& path) const {
    return find_interpreter({.choice = choice, .path = path, .home = "", .pyenv_root = ""});
  }

  fs::path directory_;
  Interpreter system_;
};

TEST_F(InterpreterTest, SaysWhatItIs) {
  EXPECT_THAT(system_.executable, StartsWith("/usr/"));
  EXPECT_EQ(system_.executable, fs::canonical(system_.executable));
  EXPECT_THAT(system_.version, StartsWith("3."));
  EXPECT_THAT(system_.key, StartsWith("cpython-" + system_.version + "-"));
  EXPECT_THAT(system_.standard_library, Contains("json"));
  EXPECT_THAT(system_.standard_library, Contains("sqlite3"));
  EXPECT_THAT(system_.standard_library, Contains("sys"));
  EXPECT_THAT(system_.standard_library, Not(Contains("pip")));
  EXPECT_THAT(system_.directories, IsEmpty()) << "/usr is there anyway";
}

TEST_F(InterpreterTest, ShimIsResolvedByRunningIt) {
  write_program("python3", "#!/bin/sh\nexec " + system_.executable + " \"$@\"\n");
  const auto found = find("", directory_.string() + ":" + kSystemPath);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->executable, system_.executable);
}

TEST_F(InterpreterTest, VirtualEnvironmentLeadsToItsBase) {
  fs::create_directories(directory_ / "venv/bin");
  fs::create_symlink(system_.executable, directory_ / "venv/bin/python3");
  std::ofstream(directory_ / "venv/pyvenv.cfg")
      << "home = " << fs::path(system_.executable).parent_path().string() << "\n";
  for (const auto& choice : {(directory_ / "venv/bin/python3").string(), (directory_ / "venv").string()}) {
    const auto found = find(choice, "");
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->executable, system_.executable);
    EXPECT_EQ(found->key, system_.key);
  }
}

TEST_F(InterpreterTest, UnusableCandidatesArePassedOver) {
  write_program("python3", "#!/bin/sh\necho broken shim >&2\nexit 127\n");
  const auto found = find("", directory_.string() + ":" + kSystemPath);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->executable, system_.executable);
}

TEST_F(InterpreterTest, ErrorsNameEachAttempt) {
  write_program("python3", "#!/bin/sh\necho broken shim >&2\nexit 127\n");
  write_program("old",
                "#!/bin/sh\necho '{\"implementation\": \"cpython\", \"version\": \"3.8.18\", \"major\": 3, "
                "\"minor\": 8, \"base\": \"/x\", \"self\": \"/x\", \"prefix\": \"/x\"}'\n");
  write_program("other",
                "#!/bin/sh\necho '{\"implementation\": \"pypy\", \"version\": \"3.10.1\", \"major\": 3, "
                "\"minor\": 10, \"base\": \"/x\", \"self\": \"/x\", \"prefix\": \"/x\"}'\n");
  const std::pair<std::string, const char*> cases[] = {
      {"python3", "broken shim"},
      {"python3", "it is a shim that has no such version"},
      {"python3", "set `python` to a path"},
      {"old", "it is Python 3.8.18, supported are 3.9 to 3.14"},
      {"other", "only CPython"},
      {"nothing-of-that-name", "nothing of that name"},
      {(directory_ / "absent").string(), "No such file"},
      {"3.77", "no usable CPython for python = \"3.77\""},
  };
  for (const auto& [choice, reason] : cases) {
    const auto found = find(choice, directory_.string());
    ASSERT_FALSE(found.has_value()) << choice;
    EXPECT_THAT(found.error().message, HasSubstr(reason)) << choice;
  }
}

TEST_F(InterpreterTest, EmptyEnvironmentIsEnough) {
  const auto found = find("", "");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->executable, system_.executable);
}

TEST_F(InterpreterTest, InstallationIsUsedWhenTheShimOfItsNameHasNotThatVersion) {
  write_program("python3.98", "#!/bin/sh\necho no such version >&2\nexit 127\n");
  const auto programs = directory_ / ".pyenv/versions/3.98.1/bin";
  fs::create_directories(programs);
  std::ofstream(programs / "python3")
      << "#!/bin/sh\necho '{\"implementation\": \"cpython\", \"version\": \"3.98.1\", \"major\": 3, "
         "\"minor\": 98, \"base\": \"/x\", \"self\": \"/x\", \"prefix\": \"/x\"}'\n";
  ::chmod((programs / "python3").c_str(), 0755);
  const auto found = find_interpreter(
      {.choice = "python3.98", .path = directory_.string(), .home = directory_.string(), .pyenv_root = ""});
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message, HasSubstr("a shim that has no such version (no such version)"));
  EXPECT_THAT(found.error().message, HasSubstr("it is Python 3.98.1, supported are"));
}

TEST_F(InterpreterTest, VersionIsFoundOnPath) {
  const auto minor = system_.version.substr(0, system_.version.rfind('.'));
  for (const auto& choice : {minor, system_.version, "python" + minor}) {
    const auto found = find(choice, kSystemPath);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->executable, system_.executable);
  }
}

TEST_F(InterpreterTest, InstallationsBelowHomeAreFoundByVersion) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || !fs::exists(fs::path(home) / ".pyenv/versions"))
    GTEST_SKIP() << "no ~/.pyenv/versions here";
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(home) / ".pyenv/versions")) {
    const auto version = entry.path().filename().string();
    const auto found =
        find_interpreter({.choice = version, .path = kSystemPath, .home = home, .pyenv_root = ""});
    if (!found) continue;
    ++seen;
    EXPECT_EQ(found->version, version);
    EXPECT_THAT(found->directories, ElementsAre(entry.path().string()))
        << "and nothing else of the home directory";
    EXPECT_THAT(found->standard_library, Contains("json"));
    EXPECT_THAT(found->standard_library, Not(Contains("site-packages")));
  }
  EXPECT_GT(seen, 0);
}

TEST(Outermost, NestedAndSystemDirectoriesAreDropped) {
  EXPECT_THAT(outermost({"/opt/py/lib", "/opt/py", "/usr/lib/python3", "/opt/python", "/opt/py"}),
              ElementsAre("/opt/py", "/opt/python"));
}

}  // namespace
}  // namespace prims::layers

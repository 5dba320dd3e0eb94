#include "layers/compiled_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "layers/tree.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using Made = CompiledModules::Made;

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(text).str();
}

class CompiledModulesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/prims-compiled-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    for (const char* name : {"compiled", "builds", "made"}) fs::create_directories(root_ / name);
  }
  void TearDown() override { fs::remove_all(root_); }

  CompiledModules modules(const std::string& environment, const std::string& key = "cpython-3.11.2") const {
    return {root_ / "compiled", root_ / environment,
            Interpreter{.version = "3.11.2", .key = key, .cache_tag = "cpython-311"}};
  }
  fs::path packages(const std::string& environment) const {
    return root_ / environment / "lib/python3.11/site-packages";
  }

  /// An environment with one package of two modules.
  void install(const std::string& environment, const std::string& source = "x = 1") const {
    fs::create_directories(packages(environment) / "alpha/sub");
    std::ofstream(packages(environment) / "alpha/__init__.py") << "import alpha.sub.b";
    std::ofstream(packages(environment) / "alpha/sub/b.py") << source;
    std::ofstream(packages(environment) / "alpha/data.txt") << "no module";
  }

  ModuleGroup only_group(const std::string& environment) const {
    auto groups = modules(environment).survey();
    EXPECT_TRUE(groups.has_value() && groups->size() == 1);
    return groups->front();
  }

  /// As the compiler leaves them.
  fs::path compile() const {
    std::ofstream(root_ / "made/0") << "code of __init__";
    std::ofstream(root_ / "made/1") << "code of b";
    return root_ / "made";
  }

  std::string compiled_b(const std::string& environment) const {
    return read(packages(environment) / "alpha/sub/__pycache__/b.cpython-311.pyc");
  }

  fs::path root_;
};

TEST_F(CompiledModulesTest, ServesTheNextEnvironmentWithTheSameSources) {
  install("one");
  const auto group = only_group("one");
  EXPECT_THAT(group.modules, ElementsAre("alpha/__init__.py", "alpha/sub/b.py"));
  EXPECT_FALSE(modules("one").take(group));
  ASSERT_TRUE(modules("one").place(group, compile(), Made::all).has_value());
  EXPECT_EQ(compiled_b("one"), "code of b");
  install("two");
  EXPECT_TRUE(modules("two").take(only_group("two")));
  EXPECT_EQ(compiled_b("two"), "code of b");
}

TEST_F(CompiledModulesTest, AnyDifferenceIsAnotherGroup) {
  install("one");
  const auto key = only_group("one").key;
  install("other content", "x = 2");
  EXPECT_NE(only_group("other content").key, key);
  install("other name");
  fs::rename(packages("other name") / "alpha/sub/b.py", packages("other name") / "alpha/sub/c.py");
  EXPECT_NE(only_group("other name").key, key);
  EXPECT_NE(modules("one", "cpython-3.11.3").survey()->front().key, key);
  install("other data");
  std::ofstream(packages("other data") / "alpha/data.txt") << "changed";
  EXPECT_EQ(only_group("other data").key, key) << "no module";
}

TEST_F(CompiledModulesTest, TestsOfPackagesAreLeftOut) {
  install("one");
  fs::create_directories(packages("one") / "alpha/tests/deeper");
  for (const char* name : {"test_a.py", "deeper/test_b.py", "support.py"})
    std::ofstream(packages("one") / "alpha/tests" / name) << "x = 1";
  std::ofstream(packages("one") / "alpha/test_tools.py") << "no test, as far as one can tell";
  EXPECT_THAT(only_group("one").modules, ElementsAre("alpha/__init__.py", "alpha/sub/b.py",
                                                     "alpha/test_tools.py", "alpha/tests/support.py"));
}

TEST_F(CompiledModulesTest, LinksAreNotFollowed) {
  install("one");
  fs::create_directories(root_ / "outside");
  std::ofstream(root_ / "outside/secret.py") << "x";
  fs::create_directory_symlink(root_ / "outside", packages("one") / "beta");
  fs::create_directory_symlink(root_ / "outside", packages("one") / "alpha/link");
  fs::create_symlink(root_ / "outside/secret.py", packages("one") / "alpha/secret.py");
  EXPECT_EQ(only_group("one").modules.size(), 2U);
}

TEST_F(CompiledModulesTest, OnlyOrdinaryResultsAreTaken) {
  install("one");
  std::ofstream(root_ / "secret") << "secret";
  fs::create_symlink(root_ / "secret", root_ / "made/0");
  fs::create_hard_link(root_ / "secret", root_ / "made/1");
  fs::create_directories(root_ / "made/size/deeper");
  std::ofstream(root_ / "made/2") << "a number too high";
  ASSERT_TRUE(modules("one").place(only_group("one"), root_ / "made", Made::all).has_value());
  EXPECT_FALSE(fs::exists(packages("one") / "alpha/__pycache__"));
  EXPECT_EQ(read(root_ / "secret"), "secret");
  EXPECT_EQ(read(root_ / "compiled" / only_group("one").key / "size"), "0");
}

TEST_F(CompiledModulesTest, WhatThePackageBringsAlongCompiledIsReplaced) {
  install("one");
  fs::create_directories(packages("one") / "alpha/sub/__pycache__");
  std::ofstream(packages("one") / "alpha/sub/__pycache__/b.cpython-311.pyc") << "of other sources";
  fs::create_directories(root_ / "outside");
  fs::create_directory_symlink(root_ / "outside", packages("one") / "alpha/__pycache__");
  ASSERT_TRUE(modules("one").place(only_group("one"), compile(), Made::all).has_value());
  EXPECT_EQ(compiled_b("one"), "code of b");
  EXPECT_TRUE(fs::is_empty(root_ / "outside"));
}

TEST_F(CompiledModulesTest, PartOfAGroupIsUsedOnceAndNotKept) {
  install("one");
  ASSERT_TRUE(modules("one").place(only_group("one"), compile(), Made::some).has_value());
  EXPECT_EQ(compiled_b("one"), "code of b");
  EXPECT_TRUE(fs::is_empty(root_ / "compiled"));
}

TEST_F(CompiledModulesTest, DamagedGroupIsMadeAnew) {
  install("one");
  const auto group = only_group("one");
  ASSERT_TRUE(modules("one").place(group, compile(), Made::all).has_value());
  // As after a power failure: the name is there, the content is not.
  std::ofstream(root_ / "compiled" / group.key / "1", std::ios::trunc);
  install("two");
  EXPECT_FALSE(modules("two").take(group));
  fs::create_directories(root_ / "made");
  ASSERT_TRUE(modules("two").place(group, compile(), Made::all).has_value());
  install("three");
  EXPECT_TRUE(modules("three").take(group));
  EXPECT_EQ(compiled_b("three"), "code of b");
}

TEST_F(CompiledModulesTest, LeastRecentlyUsedGoesFirst) {
  for (const char* environment : {"one", "two"}) {
    install(environment, environment);
    fs::create_directories(root_ / "made");
    std::ofstream(root_ / "made/1") << std::string(100'000, 'x');
    ASSERT_TRUE(modules(environment).place(only_group(environment), compile(), Made::all).has_value());
  }
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const char* environment : {"one", "two"})
    fs::last_write_time(root_ / "compiled" / only_group(environment).key, long_ago);
  EXPECT_TRUE(modules("one").take(only_group("one")));
  collect_compiled(root_ / "compiled", root_ / "builds", kib(20));
  EXPECT_TRUE(modules("one").take(only_group("one")));
  EXPECT_FALSE(modules("two").take(only_group("two")));
  EXPECT_EQ(compiled_b("two"), "code of b") << "an environment keeps what it has";
  EXPECT_TRUE(fs::is_empty(root_ / "builds"));
}

}  // namespace
}  // namespace prims::layers

#include "layers/script_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prims::layers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ScriptBlock, DependenciesAndPythonAreRead) {
  const auto read = read_script_block(
      "#!/usr/bin/env python3\n"
      "# /// script\n"
      "# requires-python = \">=3.11\"\n"
      "# dependencies = [\n"
      "#   \"requests<3\",  # a comment\n"
      "#   'rich',\n"
      "# ]\n"
      "#\n"
      "# [tool.other]\n"
      "# dependencies = [\"not-this\"]\n"
      "# ///\n"
      "import requests\n");
  ASSERT_TRUE(read.has_value());
  ASSERT_TRUE(read->has_value());
  EXPECT_THAT((*read)->dependencies, ElementsAre("requests<3", "rich"));
  EXPECT_EQ((*read)->requires_python, ">=3.11");
}

TEST(ScriptBlock, CodeWithoutOneHasNone) {
  for (const char* code : {"", "print(1)", "# /// script\nprint(1)\n", "# /// script\n# dependencies = []\n",
                           "  # /// script\n  # ///\n", "# /// other\n# x = 1\n# ///\n"}) {
    const auto read = read_script_block(code);
    ASSERT_TRUE(read.has_value()) << code;
    EXPECT_FALSE(read->has_value()) << code;
  }
}

TEST(ScriptBlock, LineEndsOfWindowsAreFine) {
  const auto read = read_script_block("# /// script\r\n# dependencies = [\"a\"]\r\n# ///\r\nprint(1)\r\n");
  ASSERT_TRUE(read.has_value() && read->has_value());
  EXPECT_THAT((*read)->dependencies, ElementsAre("a"));
}

TEST(ScriptBlock, EmptyBlockIsABlock) {
  const auto read = read_script_block("# /// script\n# ///\n");
  ASSERT_TRUE(read.has_value() && read->has_value());
  EXPECT_THAT((*read)->dependencies, IsEmpty());
}

TEST(ScriptBlock, FaultsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"# dependencies = \"a\"", "not a list"}, {"# dependencies = [\"a\" \"b\"]", "comma"},
      {"# dependencies = [\"a]", "not closed"}, {"# dependencies = [1]", "not a string"},
      {"# dependencies", "KEY = VALUE"},        {"# requires-python = 3.11", "not a string"},
  };
  for (const auto& [line, fault] : cases) {
    const auto read = read_script_block(std::string("# /// script\n") + line + "\n# ///\n");
    ASSERT_FALSE(read.has_value()) << line;
    EXPECT_THAT(read.error().message, HasSubstr(fault)) << line;
  }
  const std::string block = "# /// script\n# x = 1\n# ///\n";
  const auto twice = read_script_block(block + "\n" + block);
  ASSERT_FALSE(twice.has_value());
  EXPECT_THAT(twice.error().message, HasSubstr("second one at line 5"));
}

TEST(Satisfies, FollowsVersionSpecifiers) {
  const std::pair<const char*, bool> cases[] = {
      {"", true},
      {">=3.9", true},
      {">=3.11.7", true},
      {">=3.12", false},
      {">=3.9,<3.11", false},
      {"<4", true},
      {"==3.11.*", true},
      {"==3.11", false},
      {"!=3.11.*", false},
      {"~=3.10", true},
      {"~=3.11.0", true},
      {"~=3.10.0", false},
      {"> 3.11 , < 3.12", true},
      {"===3.11.7", true},
  };
  for (const auto& [specifier, holds] : cases) {
    const auto result = satisfies("3.11.7", specifier);
    ASSERT_TRUE(result.has_value()) << specifier;
    EXPECT_EQ(*result, holds) << specifier;
  }
  EXPECT_FALSE(satisfies("3.11.7", "latest").has_value());
  EXPECT_FALSE(satisfies("3.11.7", ">=x").has_value());
}

}  // namespace
}  // namespace prims::layers

#include "layers/requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prims::layers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Interpreter interpreter() {
  return Interpreter{.executable = "/usr/bin/python3.11",
                     .version = "3.11.2",
                     .key = "cpython-3.11.2-0",
                     .directories = {},
                     .standard_library = {"importlib", "json", "os", "sqlite3", "xml"}};
}

std::string line_of(std::string_view given) {
  const auto read = read_requirement(given);
  const auto* requirement = std::get_if<Requirement>(&read);
  return requirement == nullptr ? "refused: " + std::get<DependencyError>(read).message : requirement->line;
}

TEST(Requirement, HasOneNormalForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"pandas", "pandas"},
      {"  Pandas ", "pandas"},
      {"scikit_learn", "scikit-learn"},
      {"zope..interface", "zope-interface"},
      {"pandas == 2.2.3", "pandas==2.2.3"},
      {"pandas(>=2,<3)", "pandas<3,>=2"},
      {"numpy<3,>=1.26", "numpy<3,>=1.26"},
      {"numpy>=1.26 , <3", "numpy<3,>=1.26"},
      {"requests[socks,Security]>=2", "requests[security,socks]>=2"},
      {"requests[]", "requests"},
      {"torch==2.1.0+cpu", "torch==2.1.0+cpu"},
      {"numpy==1.*", "numpy==1.*"},
      {"a~=1.4.2", "a~=1.4.2"},
      {"p===1!2.0", "p===1!2.0"},
      {"tomli; python_version < '3.11'", "tomli ; python_version < '3.11'"},
      {"pywin32>=1;sys_platform=='win32'", "pywin32>=1 ; sys_platform=='win32'"},
  };
  for (const auto& [given, wanted] : cases) EXPECT_EQ(line_of(given), wanted) << given;
}

TEST(Requirement, WhatIsNotAPackageOfTheIndexIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"git+https://github.com/pallets/click.git", "git+https"},
      {"click @ https://example.org/click.whl", "is a URL"},
      {"https://example.org/x.tar.gz", "is a URL"},
      {"file:///etc/passwd", "is a URL"},
      {"./local", "is a path"},
      {"/srv/wheel.whl", "is a path"},
      {"~/thing", "is a path"},
      {"click-8.1.7-py3-none-any.whl", "is a path"},
      {"-r other.txt", "is an option"},
      {"--index-url=x", "is an option"},
      {"-e .", "is an option"},
      {"", "is empty"},
      {"   ", "is empty"},
      {"pandas\n--index-url x", "line break"},
      {"pandas\r", "line break"},
      {"pandas --pre", "not a valid requirement"},
      {"pandas==", "not a valid requirement"},
      {"pandas=2", "not a valid requirement"},
      {"pandas numpy", "not a valid requirement"},
      {"pandas,numpy", "not a valid requirement"},
      {"pandas[", "not a valid requirement"},
      {"_x", "not a valid requirement"},
      {"x-", "not a valid requirement"},
      {"${HOME}", "not a valid requirement"},
      {"pandas # comment", "not a valid requirement"},
      {"pandas ; python_version < '3' \\", "not a valid requirement"},
      {"pandas --hash=sha256:00", "not a valid requirement"},
      {"pandas;", "not a valid requirement"},
      {"nump\xD1\x83", "U+0443"},
      {"pandas\xEF\xBC\x9D\xEF\xBC\x9D"
       "2",
       "U+FF1D"},
      {"pandas\xFF", "U+FFFD"},
  };
  for (const auto& [given, reason] : cases) {
    const auto read = read_requirement(given);
    const auto* refused = std::get_if<DependencyError>(&read);
    ASSERT_NE(refused, nullptr) << given;
    EXPECT_THAT(refused->message, HasSubstr(reason)) << given;
    EXPECT_FALSE(refused->hint.empty()) << given;
  }
}

TEST(Requirement, UrlRefusalNamesTheSetting) {
  const auto read = read_requirement("git+https://github.com/pallets/click.git");
  EXPECT_THAT(std::get<DependencyError>(read).hint, HasSubstr("index_url"));
}

TEST(Requirement, LengthAndNumberAreBounded) {
  EXPECT_THAT(line_of(std::string(kLongestRequirement + 1, 'a')), HasSubstr("longer than"));
  const auto many = read_requirements(std::vector<std::string>(kMostRequirements + 1, "a"), interpreter());
  EXPECT_THAT(std::get<DependencyError>(many).message, HasSubstr("at most 100"));
}

TEST(RequirementSet, OrderSpellingAndRepetitionDoNotMatter) {
  const auto one = read_requirements({"Pandas", "numpy>=1,<3", "pandas"}, interpreter());
  const auto other = read_requirements({"numpy <3, >=1", "PANDAS"}, interpreter());
  EXPECT_EQ(std::get<RequirementSet>(one).text(), "numpy<3,>=1\npandas\n");
  EXPECT_EQ(std::get<RequirementSet>(one).text(), std::get<RequirementSet>(other).text());
}

TEST(RequirementSet, StandardLibraryNamesAreLeftOutWithANote) {
  const auto read = read_requirements({"json", "sqlite3", "os", "humanize"}, interpreter());
  const auto& set = std::get<RequirementSet>(read);
  EXPECT_EQ(set.text(), "humanize\n");
  EXPECT_THAT(set.notes, ElementsAre(HasSubstr("json, sqlite3, os belong to Python's standard library")));
  const auto alone = read_requirements({"xml"}, interpreter());
  EXPECT_THAT(std::get<RequirementSet>(alone).notes,
              ElementsAre(HasSubstr("xml belongs to Python's standard library")));
}

TEST(RequirementSet, OneRefusalRefusesAll) {
  const auto read = read_requirements({"numpy", "./x"}, interpreter());
  EXPECT_THAT(std::get<DependencyError>(read).message, HasSubstr("\"./x\""));
}

TEST(RequirementSet, NothingAskedForIsNothing) {
  const auto read = read_requirements({}, interpreter());
  EXPECT_TRUE(std::get<RequirementSet>(read).empty());
  EXPECT_THAT(std::get<RequirementSet>(read).notes, IsEmpty());
}

}  // namespace
}  // namespace prims::layers

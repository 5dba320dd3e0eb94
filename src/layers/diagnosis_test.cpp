#include "layers/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prims::layers {
namespace {

using testing::HasSubstr;
using testing::Not;

Diagnosis of(std::string_view output) {
  return diagnose(output, Interpreter{.executable = "/usr/bin/python3.11",
                                      .version = "3.11.7",
                                      .key = "k",
                                      .directories = {},
                                      .standard_library = {}});
}

TEST(Diagnosis, PackageThatDoesNotExist) {
  const auto found =
      of("error: No solution found when resolving dependencies\n"
         "  cause: Because nosuchpackage was not found in the package registry and you require "
         "nosuchpackage, we can conclude "
         "that your requirements are unsatisfiable.\n");
  EXPECT_EQ(found.cause, Cause::missing);
  EXPECT_EQ(found.error.message, "The package nosuchpackage does not exist in the package index.");
  EXPECT_THAT(found.error.log, HasSubstr("No solution found"));
}

TEST(Diagnosis, PackageThatNeedsAnotherPython) {
  const auto found =
      of("error: No solution found when resolving dependencies\n"
         "  cause: Because the current Python version (3.11.7) does not satisfy all of:\n"
         "             Python>=3.12,<3.14.1\n"
         "             Python>3.14.1\n"
         "         and networkx==3.7 depends on one of:\n"
         "             Python>=3.12,<3.14.1\n"
         "             Python>3.14.1\n"
         "         we can conclude that networkx==3.7 cannot be used.\n"
         "         And because you require networkx==3.7, we can conclude that your requirements are "
         "unsatisfiable.\n");
  EXPECT_EQ(found.cause, Cause::needs_python);
  EXPECT_EQ(found.error.message,
            "networkx==3.7 needs Python >=3.12,<3.14.1 or >3.14.1; here runs Python 3.11.7.");
  EXPECT_THAT(found.error.hint, HasSubstr("requirements: [\"networkx\"]"));
  const auto short_form =
      of("error: No solution found when resolving dependencies\n"
         "  cause: Because the current Python version (3.11.7) does not satisfy Python>=3.13 and foo==2 "
         "depends on "
         "Python>=3.13, we can conclude that foo==2 cannot be used.\n");
  EXPECT_EQ(short_form.error.message, "foo==2 needs Python >=3.13; here runs Python 3.11.7.");
}

TEST(Diagnosis, ConflictIsQuoted) {
  const auto found =
      of("error: No solution found when resolving dependencies\n"
         "  cause: Because pandas==2.2.0 depends on numpy>=1.23.2,<2 and you require pandas==2.2.0, we can "
         "conclude that you "
         "require numpy>=1.23.2,<2.\n"
         "         And because you require numpy==2.4.0, we can conclude that your requirements are "
         "unsatisfiable.\n");
  EXPECT_EQ(found.cause, Cause::conflict);
  EXPECT_THAT(found.error.message, HasSubstr("pandas==2.2.0 depends on numpy>=1.23.2,<2"));
  EXPECT_THAT(found.error.message, Not(HasSubstr("\n")));
}

TEST(Diagnosis, VersionThatDoesNotExist) {
  const auto found =
      of("error: No solution found when resolving dependencies\n"
         "  cause: Because there is no version of pandas==99 and you require pandas==99, we can conclude "
         "that your "
         "requirements are unsatisfiable.\n");
  EXPECT_EQ(found.cause, Cause::conflict);
  EXPECT_EQ(found.error.message, "There is no version of pandas==99.");
  EXPECT_THAT(found.error.hint, HasSubstr("\"pandas\""));
}

TEST(Diagnosis, SourceOnlyPackageNeedsABuild) {
  const auto found =
      of("error: No solution found when resolving dependencies\n"
         "  cause: Because okpkg==1.0 has no usable wheels and only okpkg==1.0 is available, we can conclude "
         "that all versions "
         "of okpkg cannot be used.\n\n"
         "hint: Wheels are required for `okpkg` because building from source is disabled for all packages "
         "(i.e., with "
         "`--no-build`)\n");
  EXPECT_EQ(found.cause, Cause::needs_build);
}

TEST(Diagnosis, FailedBuildKeepsTheLastLinesAndKnowsCompilers) {
  std::string output = "error: Failed to build `cpkg==1.0`\n  cause: The build backend returned an error\n";
  for (int i = 0; i < 100; ++i) output += "noise\n";
  output += "error: command 'gcc' failed: No such file or directory\n";
  const auto found = of(output);
  EXPECT_EQ(found.cause, Cause::build_failed);
  EXPECT_EQ(found.error.message, "Building cpkg==1.0 from source failed.");
  EXPECT_THAT(found.error.hint, HasSubstr("build-essential"));
  EXPECT_THAT(found.error.log, HasSubstr("command 'gcc' failed"));
  EXPECT_LT(std::ranges::count(found.error.log, '\n'), 40);
}

TEST(Diagnosis, IndexThatDoesNotAnswer) {
  const auto found =
      of("error: Request failed after 3 retries in 9.0s\n  cause: Failed to fetch: "
         "http://127.0.0.1:7/index/0/pyfiglet/\n"
         "  cause: error sending request for url (http://127.0.0.1:7/index/0/pyfiglet/)\n");
  EXPECT_EQ(found.cause, Cause::unreachable);
  EXPECT_THAT(found.error.hint, HasSubstr("index_url"));
  EXPECT_EQ(of("error: Failed to fetch: http://x/\n  cause: HTTP status client error (401 Unauthorized) for "
               "url (http://x/)")
                .cause,
            Cause::refused);
}

TEST(Diagnosis, AnythingElseStillSaysSomething) {
  const auto found = of("\xFF strange \x01 words");
  EXPECT_EQ(found.cause, Cause::other);
  EXPECT_FALSE(found.error.message.empty());
  EXPECT_THAT(found.error.log, HasSubstr("strange"));
}

TEST(Diagnosis, SentencesEndWithoutABlank) {
  const auto found = of("error: Failed to parse: `a b`\n  cause: no such operator  \n");
  EXPECT_EQ(found.error.message, "A requirement cannot be read: no such operator");
}

}  // namespace
}  // namespace prims::layers

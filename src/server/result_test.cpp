#include "server/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/text.h"
#include "json/schema.h"
#include "server/settings_table.h"

namespace prims::server {
namespace {

using ::testing::HasSubstr;

Report report_of(sandbox::Outcome outcome) {
  Report report;
  report.run_id = "r";
  report.run.emplace();
  report.run->outcome = std::move(outcome);
  return report;
}

const std::vector<sandbox::Outcome>& outcomes() {
  static const std::vector<sandbox::Outcome> kAll = {sandbox::Exited{0},
                                                     sandbox::Exited{3},
                                                     sandbox::Signalled{11},
                                                     sandbox::TimedOut{},
                                                     sandbox::OutOfMemory{},
                                                     sandbox::CpuTimeExceeded{},
                                                     sandbox::ProcessLimit{8, 8, 1},
                                                     sandbox::DiskLimit{},
                                                     sandbox::OutputLimit{},
                                                     sandbox::Cancelled{},
                                                     sandbox::SetupFailed{"clone", 1}};
  return kAll;
}

TEST(Result, ConformsToItsSchemaWhateverHappened) {
  const json::Value schema = result_schema();
  for (const sandbox::Outcome& outcome : outcomes()) {
    const json::Object result = to_json(report_of(outcome));
    EXPECT_EQ(json::schema_fault(schema, schema, result), std::nullopt) << json::write(result);
  }
}

TEST(Result, EverySettingItNamesExists) {
  const std::regex named("settings? ([a-z_]+)");
  for (const sandbox::Outcome& outcome : outcomes()) {
    const std::string hint = json::string_field(to_json(report_of(outcome)), "hint").value_or("");
    for (std::sregex_iterator found(hint.begin(), hint.end(), named), end; found != end; ++found) {
      EXPECT_NE(find_setting((*found)[1].str()), nullptr) << hint;
    }
  }
}

TEST(Result, OnlyAProgramThatCameToItsEndIsNoError) {
  for (const sandbox::Outcome& outcome : outcomes()) {
    const bool ended = std::holds_alternative<sandbox::Exited>(outcome);
    EXPECT_EQ(ran_to_its_end(status_of(report_of(outcome))), ended) << outcome.index();
  }
}

TEST(Result, ExitStatusesTellLimitsFromBrokenSandboxes) {
  EXPECT_EQ(exit_status_of(report_of(sandbox::Exited{3})), 3);
  EXPECT_EQ(exit_status_of(report_of(sandbox::Signalled{11})), 139);
  EXPECT_EQ(exit_status_of(report_of(sandbox::TimedOut{})), 124);
  EXPECT_EQ(exit_status_of(report_of(sandbox::OutOfMemory{})), 137);
  EXPECT_EQ(exit_status_of(report_of(sandbox::ProcessLimit{8, 8, 1})), 1);
  EXPECT_EQ(exit_status_of(report_of(sandbox::DiskLimit{})), 153);
  EXPECT_EQ(exit_status_of(report_of(sandbox::SetupFailed{})), 125);
}

TEST(Result, LongOutputKeepsHeadAndTailAndSaysWhatIsMissing) {
  Report report = report_of(sandbox::Exited{0});
  report.run->out = {"head \xE4\xBD", "\xBD\xA0 tail", 1000};  // both cuts go through a code point
  const json::Object result = to_json(report);
  EXPECT_EQ(json::string_field(result, "stdout"), "head \n[... 990 bytes left out ...]\n tail");
  const json::Object& truncated = *json::object_field(*json::object_field(result, "truncated"), "stdout");
  EXPECT_EQ(json::integer_field(truncated, "total_bytes"), 1000);
  EXPECT_EQ(json::integer_field(truncated, "shown_bytes"), 10);
}

TEST(Result, AResultThatCouldNotBeReadIsSaidSo) {
  Report report = report_of(sandbox::Exited{0});
  report.run->note = "a frame was no JSON";
  const json::Object result = to_json(report);
  EXPECT_THAT(json::string_field(result, "hint").value_or(""), HasSubstr("a frame was no JSON"));
  EXPECT_FALSE(json::string_field(result, "feedback"));
}

}  // namespace
}  // namespace prims::server

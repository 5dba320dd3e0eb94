#include "server/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prims::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<RunArguments> read(std::string_view text) {
  const json::Value value = *json::parse(text);
  return read_run_arguments(value.as_object(), {});
}

TEST(RunArguments, AreReadAsMeant) {
  const auto got = read(
      R"({"code":"pass","requirements":"[\"humanize\",\"six\"]","timeout":"30","files":null,"stdin":null,"session_id":""})");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_THAT(got->requirements, ElementsAre("humanize", "six"));
  EXPECT_EQ(got->timeout, Milliseconds(30000));
  EXPECT_FALSE(got->input);
  EXPECT_EQ(read(R"({"code":"x","timeout":0.25})")->timeout, Milliseconds(250));
  EXPECT_EQ(read(R"({"code":"x","stdin":""})")->input, "");
  EXPECT_EQ(read(R"({"code":"x","timeout":" 5 "})")->timeout, Milliseconds(5000));
  for (const char* empty : {"[]", "{}", "\"\"", "\"[]\"", "null"}) {
    EXPECT_TRUE(read(std::string(R"({"code":"x","files":)") + empty + "}")) << empty;
  }
  EXPECT_TRUE(read(R"({"code":"x","requirements":""})")->requirements.empty());
}

struct Refusal {
  const char* arguments;
  const char* says;
};

class RunArgumentsRefused : public ::testing::TestWithParam<Refusal> {};

TEST_P(RunArgumentsRefused, NamesTheArgumentAndTheForm) {
  const auto got = read(GetParam().arguments);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Kind::invalid_input);
  EXPECT_THAT(got.error().message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Table, RunArgumentsRefused,
    ::testing::Values(Refusal{R"({})", "\"code\" is missing"},
                      Refusal{R"({"code":null})", "\"code\" is missing"},
                      Refusal{R"({"code":7})", "must be a string"},
                      Refusal{R"({"code":"x","timeout":0})", "greater than 0"},
                      Refusal{R"({"code":"x","timeout":-1})", "greater than 0"},
                      Refusal{R"({"code":"x","timeout":"30s"})", "\"30s\""},
                      Refusal{R"({"code":"x","timeout":"nan"})", "greater than 0"},
                      Refusal{R"({"code":"x","timeout":true})", "not a number"},
                      Refusal{R"({"code":"x","timeout":1e300})", "at most 3600"},
                      Refusal{R"({"code":"x","requirements":"{not json"})", "\"requirements\""},
                      Refusal{R"({"code":"x","requirements":"humanize"})", "list of strings"},
                      Refusal{R"({"code":"x","requirements":[1]})", "list of strings"},
                      Refusal{R"({"code":"x","requirements":{}})", "list of strings"},
                      Refusal{R"({"code":"x","stdin":1})", "\"stdin\""},
                      Refusal{R"({"code":"x","timout":3})", "did you mean \"timeout\""},
                      Refusal{R"({"code":"x","zzz":null})", "unknown argument \"zzz\""},
                      Refusal{R"({"code":"x","session_id":"abc"})", "session_id"},
                      Refusal{R"({"code":"x","files":[{"url":"u","mountPath":"m"}]})", "files"}));

TEST(RunArguments, CodeIsCountedInCharacters) {
  json::Object arguments;
  std::string code;
  for (int i = 0; i < 20000; ++i) code += "\xC3\xA4";
  arguments["code"] = code;
  EXPECT_TRUE(read_run_arguments(arguments, {}));
  arguments["code"] = code + "x";
  const auto got = read_run_arguments(arguments, {});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("Code block too large (20k char limit)"));
}

}  // namespace
}  // namespace prims::server

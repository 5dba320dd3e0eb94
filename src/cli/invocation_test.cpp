#include "cli/invocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/help.h"
#include "server/settings_table.h"

namespace prims::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <class T>
T parsed(std::vector<std::string> arguments) {
  auto invocation = parse_arguments(std::move(arguments));
  if (!invocation || !std::holds_alternative<T>(invocation->command)) {
    ADD_FAILURE() << (invocation ? "another command" : invocation.error().message);
    return {};
  }
  return std::get<T>(std::move(invocation->command));
}

std::string error(std::vector<std::string> arguments) {
  const auto invocation = parse_arguments(std::move(arguments));
  return invocation ? "no error" : invocation.error().message;
}

TEST(Run, TakesAFileOrCodeAndHandsTheRestToTheProgram) {
  EXPECT_EQ(parsed<RunCommand>({"run", "a.py"}).file, "a.py");
  EXPECT_EQ(parsed<RunCommand>({"run", "-"}).file, "-");
  EXPECT_EQ(parsed<RunCommand>({"run", "-c", "-1"}).code, "-1");
  EXPECT_EQ(parsed<RunCommand>({"run", "-c", "[1, 2]"}).code, "[1, 2]");
  EXPECT_EQ(parsed<RunCommand>({"run", "-c", ""}).code, "");
  const RunCommand run = parsed<RunCommand>({"run", "--with", "pandas[excel]>=2,<3", "--with=six", "--json",
                                             "--output", "o", "a.py", "--", "--json", "--", "-x"});
  EXPECT_THAT(run.requirements, ElementsAre("pandas[excel]>=2,<3", "six"));
  EXPECT_THAT(run.arguments, ElementsAre("--json", "--", "-x"));
  EXPECT_EQ(run.form, Form::json);
  EXPECT_EQ(run.output, "o");
}

TEST(Run, MistakesAreNamed) {
  EXPECT_THAT(error({"run"}), HasSubstr("needs a FILE"));
  EXPECT_THAT(error({"run", "a.py", "b"}), HasSubstr("prims run FILE -- b"));
  EXPECT_THAT(error({"run", "a.py", "--epochs", "3"}), HasSubstr("prims run FILE -- --epochs"));
  EXPECT_THAT(error({"run", "--timeot", "3", "a.py"}), HasSubstr("did you mean --timeout?"));
  EXPECT_THAT(error({"run", "-c"}), HasSubstr("-c"));
}

TEST(Settings, EveryOneIsAFlagOfTheCommandsThatRunSomething) {
  for (const server::Definition& setting : server::settings_table()) {
    for (const char* command : {"serve", "stdio", "doctor", "config"}) {
      std::vector<std::string> arguments = {command, server::flag_name(setting)};
      if (!server::is_switch(setting)) arguments.emplace_back("value");
      const auto invocation = parse_arguments(arguments);
      ASSERT_TRUE(invocation) << setting.key << ": " << invocation.error().message;
      ASSERT_EQ(invocation->flags.size(), 1u) << setting.key;
      EXPECT_EQ(invocation->flags[0].key, setting.key);
      EXPECT_EQ(invocation->flags[0].value, server::is_switch(setting) ? "true" : "value");
    }
  }
}

TEST(Settings, ARepeatedFlagKeepsEveryValue) {
  const auto invocation = parse_arguments({"config", "--base-packages", "a", "--base-packages", "b",
                                           "--allow-unauthenticated=false", "--port=1"});
  ASSERT_TRUE(invocation);
  ASSERT_EQ(invocation->flags.size(), 4u);
  EXPECT_EQ(invocation->flags[1].value, "false");
  EXPECT_EQ(invocation->flags[2].value, "a");
  EXPECT_EQ(invocation->flags[3].value, "b");
}

TEST(CallCommand, AUrlOrAServerToStart) {
  const CallCommand list = parsed<CallCommand>({"call", "http://localhost:9000/mcp"});
  EXPECT_EQ(list.url, "http://localhost:9000/mcp");
  EXPECT_FALSE(list.tool);
  const CallCommand http =
      parsed<CallCommand>({"call", "https://h/mcp", "run_code", R"({"code": "1"})", "--json"});
  EXPECT_EQ(http.tool, "run_code");
  EXPECT_EQ(http.arguments, R"({"code": "1"})");
  EXPECT_EQ(http.form, Form::json);
  const CallCommand before =
      parsed<CallCommand>({"call", "echo", "{}", "--", "prims", "stdio", "--port", "1"});
  EXPECT_THAT(before.command, ElementsAre("prims", "stdio", "--port", "1"));
  EXPECT_EQ(before.tool, "echo");
  const CallCommand after = parsed<CallCommand>({"call", "--", "prims", "stdio", "--", "echo"});
  EXPECT_THAT(after.command, ElementsAre("prims", "stdio"));
  EXPECT_EQ(after.tool, "echo");
  EXPECT_EQ(after.arguments, "{}");
}

TEST(CallCommand, MistakesAreNamed) {
  EXPECT_THAT(error({"call"}), HasSubstr("needs a URL"));
  EXPECT_THAT(error({"call", "localhost:9000"}), HasSubstr("is not an http:// or https:// URL"));
  EXPECT_THAT(error({"call", "--"}), HasSubstr("needs a command after --"));
  EXPECT_THAT(error({"call", "http://h", "a", "{}", "b"}), HasSubstr("does not expect 'b'"));
}

TEST(Commands, SlipsAreNamed) {
  EXPECT_THAT(error({"srve"}), HasSubstr("did you mean serve?"));
  EXPECT_THAT(error({"doctr"}), HasSubstr("did you mean doctor?"));
  EXPECT_THAT(error({"--prot"}), HasSubstr("no option --prot"));
  EXPECT_THAT(error({"--state-dir", "X", "run"}),
              HasSubstr("options follow the command: prims COMMAND --state-dir"));
  EXPECT_THAT(error({"--json", "run"}), HasSubstr("options follow the command"));
  EXPECT_THAT(error({"help", "doctr"}), HasSubstr("no command doctr; did you mean doctor?"));
  EXPECT_THAT(error({"help", "nope"}), HasSubstr("no command nope"));
  EXPECT_THAT(error({"serve", "now"}), HasSubstr("does not expect 'now'"));
  EXPECT_THAT(error({"serve", "--prt", "1"}), HasSubstr("did you mean --port?"));
  EXPECT_THAT(error({}), HasSubstr("Examples:"));
}

TEST(Help, ExistsForEveryCommandWithExamplesFirst) {
  EXPECT_THAT(parsed<PrintText>({"--help"}).text, AllOf(HasSubstr("Examples:"), HasSubstr("doctor")));
  EXPECT_THAT(parsed<PrintText>({"--version"}).text, HasSubstr("prims "));
  for (const std::string& command : command_names()) {
    for (const char* flag : {"-h", "--help"}) {
      const std::string text = parsed<PrintText>({command, flag}).text;
      EXPECT_EQ(text, command_help(command));
      EXPECT_LT(text.find("Examples:"), text.find("\n  -h, --help")) << command;
    }
    EXPECT_THAT(program_help(), HasSubstr("\n  " + command));
  }
}

TEST(Help, OfServeListsEverySetting) {
  for (const server::Definition& setting : server::settings_table()) {
    EXPECT_THAT(command_help("serve"), HasSubstr("  " + server::flag_name(setting) + " ")) << setting.key;
  }
}

}  // namespace
}  // namespace prims::cli

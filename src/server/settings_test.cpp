#include "server/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "server/settings_table.h"

namespace prims::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "prims-settings-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    sources_.directory = directory_ / "here";
    sources_.environment = {{"HOME", (directory_ / "home").string()}};
    std::filesystem::create_directories(sources_.directory);
  }
  ~SettingsTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path file(const std::string& name, const std::string& text) const {
    const auto path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }

  LoadedSettings load() const {
    auto loaded = load_settings(sources_);
    if (!loaded) ADD_FAILURE() << loaded.error().message;
    return loaded ? std::move(*loaded) : LoadedSettings{};
  }

  std::string error() const {
    const auto loaded = load_settings(sources_);
    return loaded ? "no error" : loaded.error().message;
  }

  EffectiveValue effective(const std::string& key) const {
    for (const EffectiveValue& value : load().effective) {
      if (value.key == key) return value;
    }
    return {};
  }

  std::filesystem::path directory_;
  Sources sources_;
};

TEST_F(SettingsTest, DefaultsHoldWhenNobodySpeaks) {
  const LoadedSettings loaded = load();
  EXPECT_EQ(loaded.settings.port, 9000);
  EXPECT_EQ(loaded.settings.timeout, Milliseconds(100'000));
  EXPECT_EQ(loaded.settings.memory, gib(2));
  EXPECT_EQ(loaded.settings.state_dir, directory_ / "home/.local/state/prims");
  EXPECT_FALSE(loaded.file);
  EXPECT_THAT(loaded.warnings, IsEmpty());
  for (const EffectiveValue& value : loaded.effective) EXPECT_EQ(value.origin, "default") << value.key;
}

TEST_F(SettingsTest, AFlagBeatsAVariableBeatsTheFile) {
  const auto path = file("here/prims.toml", "# ours\nport = 1111\ntimeout = \"30s\"\nmemory = \"1GiB\"\n");
  sources_.environment["PRIMS_PORT"] = "2222";
  sources_.environment["PRIMS_TIMEOUT"] = "20";
  sources_.flags = {{"port", "3333"}};
  EXPECT_EQ(effective("port").value, "3333");
  EXPECT_EQ(effective("port").origin, "--port");
  EXPECT_EQ(effective("timeout").value, "20s");
  EXPECT_EQ(effective("timeout").origin, "PRIMS_TIMEOUT");
  EXPECT_EQ(effective("memory").value, "1GiB");
  EXPECT_EQ(effective("memory").origin, path.string() + ":4");
  EXPECT_EQ(effective("processes").origin, "default");
}

TEST_F(SettingsTest, OlderVariablesCountUntilTheNewOneIsSet) {
  sources_.environment["PORT"] = "8080";
  sources_.environment["PRIMCS_TIMEOUT"] = "12";
  sources_.environment["PRIMCS_MAX_OUTPUT"] = "1048576";
  sources_.environment["PRIMCS_TMP_DIR"] = "/tmp/primcs";
  EXPECT_EQ(effective("port").origin, "PORT");
  EXPECT_EQ(effective("timeout").value, "12s");
  EXPECT_EQ(effective("shown_output").value, "1MiB");
  EXPECT_EQ(effective("state_dir").value, "/tmp/primcs");
  sources_.environment["PRIMS_PORT"] = "9100";
  EXPECT_EQ(effective("port").value, "9100");
  EXPECT_EQ(effective("port").origin, "PRIMS_PORT");
}

TEST_F(SettingsTest, AnEmptyVariableIsNotSet) {
  sources_.environment["PRIMS_PORT"] = "";
  EXPECT_EQ(effective("port").origin, "default");
}

TEST_F(SettingsTest, TheFirstFileThatExistsIsTheOnlyOne) {
  file("home/.config/prims/prims.toml", "port = 1\ntimeout = 1\n");
  EXPECT_EQ(effective("port").value, "1");
  file("xdg/prims/prims.toml", "port = 2\n");
  sources_.environment["XDG_CONFIG_HOME"] = (directory_ / "xdg").string();
  EXPECT_EQ(effective("port").value, "2");
  EXPECT_EQ(effective("timeout").origin, "default");
  file("here/prims.toml", "port = 3\n");
  EXPECT_EQ(effective("port").value, "3");
  sources_.environment["PRIMS_CONFIG"] = file("named.toml", "port = 4\n").string();
  EXPECT_EQ(effective("port").value, "4");
  sources_.config = file("flag.toml", "port = 5\n");
  EXPECT_EQ(effective("port").value, "5");
  EXPECT_EQ(load().file, sources_.config);
}

TEST_F(SettingsTest, ANamedFileMustExist) {
  sources_.config = directory_ / "absent.toml";
  EXPECT_THAT(error(), AllOf(HasSubstr("absent.toml"), HasSubstr("cannot be read")));
}

TEST_F(SettingsTest, AFileOfSomebodyElseIsNotPickedUpBySearch) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const auto path = file("here/prims.toml", "port = 3\n");
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_THAT(error(), AllOf(HasSubstr("belongs to another user (uid 65534)"), HasSubstr("--config")));
  sources_.config = path;
  EXPECT_EQ(effective("port").value, "3");
}

TEST_F(SettingsTest, ListsFromEverySource) {
  file("here/prims.toml", "base_packages = [\"numpy >=1,<3\", \"six\"]\n");
  EXPECT_THAT(load().settings.base_packages, ElementsAre("numpy >=1,<3", "six"));
  sources_.environment["PRIMS_BASE_PACKAGES"] = " numpy>=1,<3  six ";
  EXPECT_THAT(load().settings.base_packages, ElementsAre("numpy>=1,<3", "six"));
  sources_.flags = {{"base_packages", "a"}, {"base_packages", "b"}};
  EXPECT_THAT(load().settings.base_packages, ElementsAre("a", "b"));
  sources_.flags = {{"base_packages", ""}};
  EXPECT_THAT(load().settings.base_packages, IsEmpty());
}

TEST_F(SettingsTest, TimesAndSizesAsPeopleWriteThem) {
  struct Row {
    const char* text;
    const char* shown;
  };
  for (const Row& row :
       {Row{"\"30s\"", "30s"}, Row{"\"2m\"", "2m"}, Row{"100", "100s"}, Row{"\"100\"", "100s"},
        Row{"1.5", "1500ms"}, Row{"\"250ms\"", "250ms"}, Row{"\"1h\"", "1h"}, Row{"\"1.5 m\"", "90s"}}) {
    file("here/prims.toml", std::string("timeout = ") + row.text + "\n");
    EXPECT_EQ(effective("timeout").value, row.shown) << row.text;
  }
  for (const Row& row : {Row{"\"512 MiB\"", "512MiB"}, Row{"1073741824", "1GiB"}, Row{"\"64m\"", "64MiB"},
                         Row{"33554433", "33554433"}}) {
    file("here/prims.toml", std::string("memory = ") + row.text + "\n");
    EXPECT_EQ(effective("memory").value, row.shown) << row.text;
  }
}

TEST_F(SettingsTest, ErrorsInTheFileNameTheLineTheKeyAndWhatIsAccepted) {
  struct Row {
    const char* text;
    std::vector<const char*> parts;
  };
  const Row rows[] = {
      {"prt = 9000", {"prims.toml:1:", "unknown setting prt", "did you mean port?"}},
      {"\n\nzzzzzzzz = 1", {"prims.toml:3:", "unknown setting zzzzzzzz"}},
      {"port = 70000", {"prims.toml:1: port: '70000'", "from 0 to 65535"}},
      {"port = -1", {"port: '-1'", "a whole number"}},
      {"port = \"http\"", {"port: 'http'", "a whole number"}},
      {"port = [1]", {"prims.toml:1: port", "a list with something else than texts"}},
      {"port = [\"1\"]", {"prims.toml:1: port: write a whole number"}},
      {"base_packages = \"numpy\"", {"base_packages: write a list of texts"}},
      {"timeout = 0", {"timeout: '0'", "30s, 2m or 100 (seconds)"}},
      {"timeout = \"30 parsecs\"", {"timeout: '30 parsecs'", "30s"}},
      {"timeout = \"nan\"", {"timeout: 'nan'"}},
      {"memory = \"1KiB\"", {"memory: '1KiB'", "at least 32MiB"}},
      {"memory = \"lots\"", {"memory: 'lots'", "512MiB"}},
      {"min_tier = \"none\"", {"min_tier: 'none'", "one of full, namespaces"}},
      {"log_level = \"loud\"", {"one of debug, info, warning, error"}},
      {"allow_unauthenticated = \"maybe\"",
       {"allow_unauthenticated: 'maybe'", "true, false, on, off, 1 or 0"}},
      {"allow_unauthenticated = \"yes\"", {"allow_unauthenticated: 'yes'"}},
      {"first_uid = 0", {"first_uid: '0'", "from 1 to"}},
      {"host = \"\"", {"host: ''"}},
      {"port = 1\nport = 2", {"prims.toml:2:"}},
      {"port = \n", {"prims.toml:1:"}},
      {"[limits]\nmemory = 1", {"prims.toml:1: limits is a table"}},
      {"timeout = 2026-01-01", {"timeout is a date or time"}},
  };
  for (const Row& row : rows) {
    file("here/prims.toml", std::string(row.text) + "\n");
    for (const char* part : row.parts) EXPECT_THAT(error(), HasSubstr(part)) << row.text;
  }
}

TEST_F(SettingsTest, ErrorsOfFlagsAndVariablesNameThem) {
  sources_.environment["PRIMS_MEMORY"] = "huge";
  EXPECT_THAT(error(), AllOf(HasSubstr("PRIMS_MEMORY: memory: 'huge'"), HasSubstr("a size such as 512MiB")));
  sources_.environment.erase("PRIMS_MEMORY");
  sources_.flags = {{"state_dir", ""}};
  EXPECT_THAT(error(), HasSubstr("--state-dir: state_dir: ''"));
  sources_.flags = {{"port", "1"}, {"port", "2"}};
  EXPECT_THAT(error(), HasSubstr("--port: port: given 2 times"));
}

TEST_F(SettingsTest, ValuesMustFitTogether) {
  sources_.environment["PRIMCS_TIMEOUT"] = "7200";
  EXPECT_EQ(error(), "timeout = 2h (PRIMCS_TIMEOUT) is more than max_timeout = 1h (default)");
  sources_.environment.erase("PRIMCS_TIMEOUT");
  sources_.flags = {{"kept_output", "32KiB"}};
  EXPECT_EQ(error(), "shown_output = 64KiB (default) is more than kept_output = 32KiB (--kept-output)");
}

TEST_F(SettingsTest, AnUnknownVariableIsWorthAWord) {
  sources_.environment["PRIMS_TIMEOT"] = "1";
  sources_.environment["PRIMS_ZZZZZZZZZZZZ"] = "/x";
  EXPECT_THAT(
      load().warnings,
      ElementsAre("the variable PRIMS_TIMEOT is not known and has no effect; did you mean PRIMS_TIMEOUT?",
                  "the variable PRIMS_ZZZZZZZZZZZZ is not known and has no effect"));
}

TEST_F(SettingsTest, TheVariablesOfAServiceAreNoSettings) {
  sources_.environment["PRIMS_PORT"] = "tcp://10.0.0.1:9000";
  sources_.environment["PRIMS_PORT_9000_TCP_ADDR"] = "10.0.0.1";
  sources_.environment["PRIMS_SERVICE_HOST"] = "10.0.0.1";
  EXPECT_EQ(effective("port").origin, "default");
  EXPECT_THAT(load().warnings, ElementsAre(AllOf(HasSubstr("PRIMS_PORT is ignored"), HasSubstr("tcp://"))));
  sources_.environment["PORT"] = "8080";
  EXPECT_EQ(effective("port").value, "8080");
  sources_.environment["PORT"] = "tcp://10.0.0.2:80";
  EXPECT_EQ(effective("port").origin, "default");
}

TEST_F(SettingsTest, HomeIsExpandedInAFile) {
  file("here/prims.toml", "state_dir = \"~/prims-state\"\n");
  EXPECT_EQ(load().settings.state_dir, directory_ / "home/prims-state");
}

TEST(SettingsTable, NamesAreUniqueAndDefaultsAreAcceptedByTheirOwnRules) {
  std::set<std::string> names;
  const Settings defaults;
  for (const Definition& setting : settings_table()) {
    EXPECT_TRUE(names.insert(flag_name(setting)).second) << setting.key;
    for (const std::string& variable : variable_names(setting))
      EXPECT_TRUE(names.insert(variable).second) << variable;
    EXPECT_FALSE(setting.help.empty() || setting.help.ends_with('.')) << setting.key;
    const std::string value = show(defaults, setting);
    EXPECT_TRUE(!value.empty() || !setting.when_empty.empty()) << setting.key;
    if (value.empty() || is_list(setting)) continue;
    Settings copy;
    EXPECT_TRUE(assign(copy, setting, {value})) << setting.key << " = " << value;
    EXPECT_EQ(show(copy, setting), value);
  }
}

std::string page(const std::string& name) {
  std::ifstream in(std::string(PRIMS_SOURCE_DIR) + "/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(SettingsReference, ThePageInDocsIsTheOneOfTheTable) {
  EXPECT_EQ(page("docs/settings.md"), settings_reference())
      << "write it anew: prims config --reference > docs/settings.md";
}

TEST(SettingsReference, TheReadmeHoldsTheTableOfLimits) {
  EXPECT_THAT(page("README.md"), HasSubstr(limits_table()));
}

}  // namespace
}  // namespace prims::server

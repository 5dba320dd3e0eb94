#include "layers/index_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace prims::layers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

IndexSettings read(StoreOptions options, std::map<std::string, std::string> environment) {
  return read_index_settings(options, [environment](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

StoreOptions options(std::string index, std::vector<std::string> extra) {
  StoreOptions given;
  given.index_url = std::move(index);
  given.extra_index_urls = std::move(extra);
  return given;
}

TEST(IndexSettings, OurSettingsComeFirst) {
  const auto settings = read(options("http://a/simple", {"http://b/simple"}),
                             {{"UV_DEFAULT_INDEX", "http://c/"}, {"UV_INDEX", "http://d/"}});
  EXPECT_EQ(settings.default_url, "http://a/simple");
  EXPECT_THAT(settings.extra, ElementsAre("http://b/simple"));
}

TEST(IndexSettings, VariablesOfUvCount) {
  const auto settings = read(options("", {"http://b/"}),
                             {{"UV_INDEX", "corp=http://d/?a=b http://e/"}, {"UV_INDEX_URL", "http://c/"}});
  EXPECT_EQ(settings.default_url, "http://c/");
  EXPECT_THAT(settings.extra, ElementsAre("http://b/", "http://d/?a=b", "http://e/"));
}

TEST(IndexSettings, OtherwiseUvIsAsked) {
  const auto settings = read(options("", {}), {});
  EXPECT_FALSE(settings.default_url.has_value());
  EXPECT_THAT(settings.extra, IsEmpty());
}

TEST(IndexSettings, IdentityChangesWithTheIndexes) {
  const auto one = read(options("http://a/", {}), {}).identity;
  EXPECT_EQ(one, read(options("http://a/", {}), {{"UV_INDEX", "http://d/"}}).identity);
  EXPECT_NE(one, read(options("http://b/", {}), {}).identity);
  EXPECT_NE(one, read(options("http://a/", {"http://b/"}), {}).identity);
}

TEST(IndexInError, IsWhatUvWanted) {
  const char* output =
      "error: Failed to fetch: https://index.example/root/simple/pip/\n"
      "  cause: error sending request for url (https://index.example/root/simple/pip/)\n  cause: dns error\n";
  EXPECT_EQ(index_in_error(output, "pip"), "https://index.example/root/simple/");
  EXPECT_EQ(index_in_error(output, "other"), std::nullopt);
  EXPECT_EQ(index_in_error("error: nothing of that kind", "pip"), std::nullopt);
  EXPECT_EQ(index_in_error("for url (https://unclosed/pip/", "pip"), std::nullopt);
}

TEST(WithoutCredentials, HidesThem) {
  EXPECT_EQ(without_credentials("https://user:secret@host/simple/@x"), "https://host/simple/@x");
  EXPECT_EQ(without_credentials("https://host/simple/"), "https://host/simple/");
}

}  // namespace
}  // namespace prims::layers

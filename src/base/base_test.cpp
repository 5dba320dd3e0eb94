#include <gtest/gtest.h>

#include <set>

#include "base/bytes.h"
#include "base/random.h"
#include "base/result.h"
#include "base/text.h"

namespace prims {
namespace {

TEST(Bytes, ReadsWhatPeopleWriteAndWritesItBack) {
  EXPECT_EQ(parse_bytes("65536")->count, 65536u);
  EXPECT_EQ(*parse_bytes("64KiB"), kib(64));
  EXPECT_EQ(*parse_bytes("2 GiB"), gib(2));
  EXPECT_EQ(*parse_bytes("512m"), mib(512));
  for (const char* bad : {"", "-1", "2 QiB", "GiB", "1.5GiB", "99999999999GiB"}) {
    const auto got = parse_bytes(bad);
    ASSERT_FALSE(got) << bad;
    EXPECT_EQ(got.error().kind, Kind::invalid_input);
  }
  EXPECT_EQ(to_string(gib(2)), "2 GiB");
  EXPECT_EQ(to_string(Bytes{1536}), "1.5 KiB");
}

TEST(Text, IllFormedPartsBecomeOneReplacementCharacterEach) {
  EXPECT_EQ(to_utf8("plain \xC3\xA4"), "plain \xC3\xA4");
  EXPECT_EQ(to_utf8("bad \x81\xB3 byte"), "bad \xEF\xBF\xBD\xEF\xBF\xBD byte");
  EXPECT_EQ(to_utf8("\xF0\x9F\x8D"), "\xEF\xBF\xBD");                          // cut short
  EXPECT_EQ(to_utf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_FALSE(is_utf8("\xC0\x80"));
  EXPECT_TRUE(is_utf8(""));
}

TEST(Text, AStreamInPiecesDecodesAsInOne) {
  const std::string text = "a\xC3\xA4\xE4\xBD\xA0\xF0\x9F\x8D\xB8 \x81 z";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    Utf8Decoder decoder;
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += step)
      out += decoder.feed(std::string_view(text).substr(i, step));
    EXPECT_EQ(out, to_utf8(text)) << step;
  }
}

TEST(Text, NearMissesAreNamed) {
  const std::vector<std::string> names = {"timeout", "requirements", "code"};
  EXPECT_EQ(nearest("timout", names), "timeout");
  EXPECT_EQ(nearest("requirement", names), "requirements");
  EXPECT_FALSE(nearest("zzz", names));
}

TEST(Text, LastLines) {
  EXPECT_EQ(last_lines("a\nb\nc\n", 2), "b\nc");
  EXPECT_EQ(last_lines("a", 5), "a");
  EXPECT_EQ(last_lines("", 3), "");
}

TEST(Random, TokensAreUrlSafeAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string token = random_token();
    EXPECT_EQ(token.size(), 22u);
    EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
              std::string::npos);
    seen.insert(token);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Result, ErrnoSaysWhatTheCallerCanDo) {
  EXPECT_EQ(fail_errno("open x", ENOENT).error().kind, Kind::not_found);
  EXPECT_EQ(fail_errno("open x", ENOSPC).error().kind, Kind::exhausted);
  EXPECT_EQ(fail_errno("open x", EACCES).error().message, "open x: Permission denied");
}

}  // namespace
}  // namespace prims

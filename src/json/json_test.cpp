#include "json/json.h"

#include <gtest/gtest.h>

namespace prims::json {
namespace {

TEST(Parse, RefusesWhatTwoReadersCouldReadDifferently) {
  for (const char* bad :
       {"", "{", "{}x", "[1,]", "NaN", "{'a':1}", "\"\\ud800\"", "\"\xff\"", "// c\n1", R"({"a":1,"a":2})",
        R"({"b":{"a":1,"\u0061":2}})", "\xEF\xBB\xBF{}", "-3e4447", "[1e400]"}) {
    const auto got = parse(bad);
    ASSERT_FALSE(got) << bad;
    EXPECT_EQ(got.error().kind, Kind::invalid_input) << bad;
  }
  EXPECT_TRUE(parse(R"([{"a":1},{"a":2}])"));
  EXPECT_TRUE(parse(R"({"a":"{\"a\":1,\"a\":2}","b":["a","a"]})"));
}

TEST(Parse, DepthIsBounded) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_FALSE(parse(deep));
  EXPECT_TRUE(parse(std::string(60, '[') + std::string(60, ']')));
}

TEST(Fields, AreReadByType) {
  const Value value = *parse(R"({"s":"x","n":3,"f":2.5,"z":null,"o":{},"a":[]})");
  const Object& object = value.as_object();
  EXPECT_EQ(string_field(object, "s"), "x");
  EXPECT_FALSE(string_field(object, "n"));
  EXPECT_EQ(integer_field(object, "n"), 3);
  EXPECT_FALSE(integer_field(object, "f"));
  EXPECT_NE(find(object, "z"), nullptr);
  EXPECT_NE(object_field(object, "o"), nullptr);
  EXPECT_NE(array_field(object, "a"), nullptr);
  EXPECT_EQ(find(object, "absent"), nullptr);
}

}  // namespace
}  // namespace prims::json

#include "json/json.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(Parse, NumbersAreTheNearestDoubles) {
  for (const char* number :
       {"0.1", "2.675", "1e23", "9007199254740993.0", "5e-324", "1.7976931348623157e308",
        "123456789012345678901234567890", "-2.2250738585072014e-308", "0.30000000000000004",
        "26666666666666666666666666666666666666666666666666666666666666666666666666666647"}) {
    const auto value = parse(number);
    ASSERT_TRUE(value) << number;
    EXPECT_EQ(value->as_double(), std::strtod(number, nullptr)) << number;
    EXPECT_EQ(parse(write(*value)), *value) << number;
  }
  EXPECT_EQ(parse("1e-999")->as_double(), 0.0);
  EXPECT_FALSE(parse("1e999"));
  EXPECT_EQ(parse("18446744073709551615")->as_uint64(), 18446744073709551615U);
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

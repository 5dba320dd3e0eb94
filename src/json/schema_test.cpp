#include "json/schema.h"

#include <gtest/gtest.h>

namespace prims::json {
namespace {

Schema schema() {
  return Schema(*parse(R"({"$defs": {
    "Id": {"type": ["string", "integer"]},
    "Leaf": {"type": "object", "required": ["id"], "properties": {"id": {"$ref": "#/$defs/Id"}, "n": {"minimum": 0, "type": "integer"}},
             "additionalProperties": false},
    "Tree": {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "array", "items": {"$ref": "#/$defs/Tree"}}]},
    "Kind": {"enum": ["a", "b"]},
    "Both": {"allOf": [{"type": "object"}, {"properties": {"jsonrpc": {"const": "2.0"}}}]},
    "Open": {"type": "object", "additionalProperties": {"type": "string"}},
    "Away": {"$ref": "https://example.com/x"}}})"));
}

bool conforms(std::string_view name, std::string_view value) {
  return !schema().fault(*parse(value), name);
}

TEST(SchemaTest, AcceptsWhatConforms) {
  EXPECT_TRUE(conforms("Id", "0"));
  EXPECT_TRUE(conforms("Id", "\"x\""));
  EXPECT_TRUE(conforms("Id", "2.0"));
  EXPECT_TRUE(conforms("Leaf", R"({"id": 1, "n": 0})"));
  EXPECT_TRUE(conforms("Tree", R"([[{"id": 1}], {"id": "a"}])"));
  EXPECT_TRUE(conforms("Kind", "\"b\""));
  EXPECT_TRUE(conforms("Both", R"({"jsonrpc": "2.0", "more": 1})"));
  EXPECT_TRUE(conforms("Open", R"({"a": "b"})"));
}

TEST(SchemaTest, NamesTheFault) {
  EXPECT_FALSE(conforms("Id", "null"));
  EXPECT_FALSE(conforms("Id", "1.5"));
  EXPECT_FALSE(conforms("Kind", "\"c\""));
  EXPECT_FALSE(conforms("Both", R"({"jsonrpc": "1.0"})"));
  EXPECT_FALSE(conforms("Open", R"({"a": 1})"));
  EXPECT_FALSE(conforms("Tree", R"([{"id": 1}, 7])"));
  EXPECT_EQ(schema().fault(*parse(R"({"n": 1})"), "Leaf"), ": \"id\" is missing");
  EXPECT_EQ(schema().fault(*parse(R"({"id": 1, "n": -1})"), "Leaf"), "/n: -1 is out of range");
  EXPECT_EQ(schema().fault(*parse(R"({"id": 1, "x": 1})"), "Leaf"), "/x: nothing is allowed here");
  EXPECT_TRUE(schema().fault(*parse("1"), "Away").has_value());
  EXPECT_TRUE(schema().fault(*parse("1"), "Missing").has_value());
}

}  // namespace
}  // namespace prims::json

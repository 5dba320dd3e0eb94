// The part of JSON Schema that protocol messages are checked with: $ref (local), $defs and definitions,
// anyOf, oneOf, allOf, type, enum, const, required, properties, additionalProperties, items, minimum,
// maximum. Formats and all else are ignored.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "json/json.h"

namespace prims::json {

class Schema {
 public:
  explicit Schema(Value root) : root_(std::move(root)) {}

  /// Whether the document defines `name` under $defs or definitions.
  bool defines(std::string_view name) const;

  /// The first fault of `value` against the definition `name`, with its place; nullopt when it conforms. A
  /// name that is not defined is a fault.
  std::optional<std::string> fault(const Value& value, std::string_view name) const;

 private:
  const Value* definition(std::string_view name) const;

  Value root_;
};

/// The first fault of `value` against `schema`, whose references are resolved in `root`.
std::optional<std::string> schema_fault(const Value& root, const Value& schema, const Value& value);

}  // namespace prims::json

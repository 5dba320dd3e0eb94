// JSON for everyone above: one alias, strict reading with limits, and typed access to fields.
//
// Values are Boost.JSON's. Text that is written is always strict JSON: strings must be valid UTF-8 (see
// to_utf8), numbers finite. Objects keep the order in which keys were inserted.
#pragma once

#include <boost/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace prims::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;

/// Strict RFC 8259 with depth at most `max_depth`. Comments, trailing commas, NaN, lone surrogates, invalid
/// UTF-8, duplicate keys and trailing bytes are invalid_input, with the offset.
Result<Value> parse(std::string_view text, std::size_t max_depth = 64);

/// One line, no spaces. Every string in `value` must be valid UTF-8.
std::string write(const Value& value);

/// The member of an object, or nullptr when absent. An explicit null is present.
const Value* find(const Object& object, std::string_view key);

std::optional<std::string> string_field(const Object& object, std::string_view key);
std::optional<std::int64_t> integer_field(const Object& object, std::string_view key);
const Object* object_field(const Object& object, std::string_view key);
const Array* array_field(const Object& object, std::string_view key);

/// A string as a std::string.
inline std::string text(const boost::json::string& s) {
  return std::string(s.data(), s.size());
}

}  // namespace prims::json

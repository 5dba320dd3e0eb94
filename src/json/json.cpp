#include "json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace prims::json {
namespace {

// Boost.JSON keeps the last of two equal keys; two readers of one message must never disagree, so the text is
// scanned for duplicates before it is parsed. `text` is known to be valid JSON.
class DuplicateKeys {
 public:
  static std::optional<std::string> find(std::string_view text) {
    struct Frame {
      bool object;
      bool key_next;
      std::set<std::string, std::less<>> keys;
    };
    std::vector<Frame> stack;
    for (std::size_t i = 0; i < text.size(); ++i) {
      switch (text[i]) {
        case '{':
          stack.push_back({true, true, {}});
          break;
        case '[':
          stack.push_back({false, false, {}});
          break;
        case '}':
        case ']':
          stack.pop_back();
          break;
        case ',':
          if (!stack.empty()) stack.back().key_next = stack.back().object;
          break;
        case ':':
          if (!stack.empty()) stack.back().key_next = false;
          break;
        case '"': {
          const std::size_t start = i;
          bool escaped = false;
          for (++i; text[i] != '"'; ++i) {
            if (text[i] == '\\') {
              escaped = true;
              ++i;
            }
          }
          if (!stack.empty() && stack.back().object && stack.back().key_next) {
            std::string key(text.substr(start + 1, i - start - 1));
            if (escaped) {
              const Value decoded = boost::json::parse(text.substr(start, i - start + 1));
              key = json::text(decoded.as_string());
            }
            if (!stack.back().keys.insert(key).second) return key;
          }
          break;
        }
        default:
          break;
      }
    }
    return std::nullopt;
  }
};

// A number beyond the range of a double becomes infinite, which JSON cannot write again.
bool is_finite(const Value& value) {
  if (const double* number = value.if_double()) return std::isfinite(*number);
  if (const Array* array = value.if_array()) return std::ranges::all_of(*array, is_finite);
  if (const Object* object = value.if_object()) {
    return std::ranges::all_of(*object, [](const auto& member) { return is_finite(member.value()); });
  }
  return true;
}

}  // namespace

Result<Value> parse(std::string_view text, std::size_t max_depth) {
  boost::json::parse_options options;
  options.max_depth = max_depth;
  boost::json::parser parser({}, options);
  boost::json::error_code error;
  const std::size_t read = parser.write_some(text.data(), text.size(), error);
  if (!error && text.find_first_not_of(" \t\r\n", read) != std::string_view::npos) {
    return fail(Kind::invalid_input, fmt::format("text follows the JSON value at byte {}", read));
  }
  if (error) {
    return fail(Kind::invalid_input, fmt::format("not JSON at byte {}: {}", read, error.message()));
  }
  if (const auto duplicate = DuplicateKeys::find(text)) {
    return fail(Kind::invalid_input, fmt::format("the key \"{}\" occurs twice in one object", *duplicate));
  }
  Value value = parser.release();
  if (!is_finite(value)) return fail(Kind::invalid_input, "a number is outside of the range of a double");
  return value;
}

std::string write(const Value& value) {
  return boost::json::serialize(value);
}

const Value* find(const Object& object, std::string_view key) {
  return object.if_contains(key);
}

std::optional<std::string> string_field(const Object& object, std::string_view key) {
  const Value* value = find(object, key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return text(value->get_string());
}

std::optional<std::int64_t> integer_field(const Object& object, std::string_view key) {
  const Value* value = find(object, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  boost::json::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  if (error) return std::nullopt;
  return number;
}

const Object* object_field(const Object& object, std::string_view key) {
  const Value* value = find(object, key);
  return value == nullptr ? nullptr : value->if_object();
}

const Array* array_field(const Object& object, std::string_view key) {
  const Value* value = find(object, key);
  return value == nullptr ? nullptr : value->if_array();
}

}  // namespace prims::json

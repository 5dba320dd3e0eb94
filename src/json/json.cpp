#include "json/json.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <set>
#include <system_error>
#include <vector>

namespace prims::json {
namespace {

// What Boost's own parser does with the events of a text, but for two things: numbers are read to the nearest
// double (its own reading may be off in the last digit), and a key that occurs twice in one object is an
// error, because two readers of one message must never disagree.
class Builder {
 public:
  // NOLINTBEGIN(readability-identifier-naming): names that Boost looks for
  static constexpr std::size_t max_object_size = Object::max_size();
  static constexpr std::size_t max_array_size = Array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  using View = boost::json::string_view;
  using ErrorCode = boost::json::error_code;

  bool on_document_begin(ErrorCode&) { return true; }
  bool on_document_end(ErrorCode&) { return true; }
  bool on_object_begin(ErrorCode&) {
    keys_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t size, ErrorCode&) {
    keys_.pop_back();
    stack_.push_object(size);
    return true;
  }
  bool on_array_begin(ErrorCode&) { return true; }
  bool on_array_end(std::size_t size, ErrorCode&) {
    stack_.push_array(size);
    return true;
  }
  bool on_key_part(View part, std::size_t, ErrorCode&) {
    key_.append(part);
    stack_.push_chars(part);
    return true;
  }
  bool on_key(View part, std::size_t, ErrorCode& error) {
    key_.append(part);
    const bool fresh = keys_.back().insert(key_).second;
    if (!fresh) refuse(fmt::format("the key \"{}\" occurs twice in one object", key_), error);
    key_.clear();
    stack_.push_key(part);
    return fresh;
  }
  bool on_string_part(View part, std::size_t, ErrorCode&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(View part, std::size_t, ErrorCode&) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(View part, ErrorCode&) {
    number_.append(part);
    return true;
  }
  bool on_int64(std::int64_t number, View, ErrorCode&) {
    number_.clear();
    stack_.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, View, ErrorCode&) {
    number_.clear();
    stack_.push_uint64(number);
    return true;
  }
  bool on_double(double about, View part, ErrorCode& error) {
    number_.append(part);
    double number = 0;
    const auto read = std::from_chars(number_.data(), number_.data() + number_.size(), number);
    // Too small for a double is zero; too large is nothing that JSON can write again.
    const bool too_large = read.ec == std::errc::result_out_of_range && std::abs(about) > 1;
    number_.clear();
    if (too_large) return refuse("a number is outside of the range of a double", error);
    stack_.push_double(number);
    return true;
  }
  bool on_bool(bool truth, ErrorCode&) {
    stack_.push_bool(truth);
    return true;
  }
  bool on_null(ErrorCode&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(View, ErrorCode&) { return true; }
  bool on_comment(View, ErrorCode&) { return true; }

  void begin() { stack_.reset(); }
  Value release() { return stack_.release(); }

  /// Why a text that is JSON is refused all the same; empty: it is not.
  const std::string& refusal() const { return refusal_; }

 private:
  bool refuse(std::string reason, ErrorCode& error) {
    refusal_ = std::move(reason);
    error = boost::json::error::syntax;  // any: the reason is what is told
    return false;
  }

  boost::json::value_stack stack_;
  std::vector<std::set<std::string, std::less<>>> keys_;  // of the objects that are open
  std::string key_;                                       // the part of one that was told so far
  std::string number_;
  std::string refusal_;
};

}  // namespace

Result<Value> parse(std::string_view text, std::size_t max_depth) {
  boost::json::parse_options options;
  options.max_depth = max_depth;
  boost::json::basic_parser<Builder> parser(options);
  boost::json::error_code error;
  parser.handler().begin();
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (const std::string& refusal = parser.handler().refusal(); !refusal.empty()) {
    return fail(Kind::invalid_input, refusal);
  }
  if (!error && text.find_first_not_of(" \t\r\n", read) != std::string_view::npos) {
    return fail(Kind::invalid_input, fmt::format("text follows the JSON value at byte {}", read));
  }
  if (error) {
    return fail(Kind::invalid_input, fmt::format("not JSON at byte {}: {}", read, error.message()));
  }
  return parser.handler().release();
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

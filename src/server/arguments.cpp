#include "server/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace prims::server {
namespace {

const std::array<std::string, 6> kNames = {"code", "requirements", "timeout", "stdin", "files", "session_id"};

std::unexpected<Error> refuse(std::string message) {
  return fail(Kind::invalid_input, std::move(message));
}

// A short, one-line picture of a value for an error text.
std::string shown(const json::Value& value) {
  std::string text = json::write(value);
  if (text.size() > 80) text = to_utf8(text.substr(0, 77)) + "...";
  return text;
}

Result<> check_names(const json::Object& arguments) {
  for (const auto& member : arguments) {
    const std::string name(member.key());
    if (std::ranges::find(kNames, name) != kNames.end()) continue;
    const auto meant = nearest(name, kNames);
    return refuse(
        fmt::format("unknown argument \"{}\"{}; run_code takes code, requirements, timeout and stdin", name,
                    meant ? fmt::format(" (did you mean \"{}\"?)", *meant) : ""));
  }
  return {};
}

// The member when it is present and not null.
const json::Value* given(const json::Object& arguments, std::string_view name) {
  const json::Value* value = json::find(arguments, name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::size_t characters(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Result<std::string> read_code(const json::Object& arguments, const ArgumentLimits& limits) {
  const json::Value* code = given(arguments, "code");
  if (code == nullptr)
    return refuse("the argument \"code\" is missing; it is the Python program as a string");
  if (!code->is_string()) return refuse(fmt::format("\"code\" must be a string, not {}", shown(*code)));
  std::string text = json::text(code->get_string());
  if (const std::size_t count = characters(text); count > limits.code_length) {
    const std::string limit = limits.code_length % 1000 == 0 ? fmt::format("{}k", limits.code_length / 1000)
                                                             : fmt::to_string(limits.code_length);
    return refuse(fmt::format(
        "Code block too large ({} char limit): it has {} characters. Put data into stdin, or raise the "
        "setting code_length",
        limit, count));
  }
  return text;
}

Result<std::vector<std::string>> read_requirements(const json::Object& arguments) {
  const json::Value* value = given(arguments, "requirements");
  if (value == nullptr) return std::vector<std::string>{};
  const auto wrong = [&] {
    return refuse(fmt::format(
        "\"requirements\" must be a list of strings such as [\"humanize\", \"polars>=1\"], not {}",
        shown(*value)));
  };
  json::Value decoded;
  if (value->is_string()) {
    const std::string text = json::text(value->get_string());
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return std::vector<std::string>{};
    auto parsed = json::parse(text);
    if (!parsed || !parsed->is_array()) return wrong();
    decoded = *std::move(parsed);
    value = &decoded;
  }
  const json::Array* list = value->if_array();
  if (list == nullptr) return wrong();
  std::vector<std::string> requirements;
  for (const json::Value& item : *list) {
    if (!item.is_string()) return wrong();
    requirements.push_back(json::text(item.get_string()));
  }
  return requirements;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

Result<std::optional<Milliseconds>> read_timeout(const json::Object& arguments,
                                                 const ArgumentLimits& limits) {
  const json::Value* value = given(arguments, "timeout");
  if (value == nullptr) return std::optional<Milliseconds>{};
  const auto longest = std::chrono::duration<double>(limits.max_timeout).count();
  const auto wrong = [&](std::string_view why) {
    return refuse(
        fmt::format("\"timeout\" must be a number of seconds greater than 0 and at most {:g}, not {} ({})",
                    longest, shown(*value), why));
  };
  double seconds = 0;
  if (value->is_number()) {
    seconds = value->to_number<double>();
  } else if (value->is_string()) {
    const std::string_view text = trimmed(value->get_string());
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seconds);
    if (error != std::errc{} || rest != end) return wrong("not a plain number");
  } else {
    return wrong("not a number");
  }
  if (!std::isfinite(seconds) || seconds <= 0) return wrong("it must be greater than 0");
  if (seconds > longest) return wrong("the setting max_timeout says so");
  const auto rounded = static_cast<std::int64_t>(std::ceil(seconds * 1000));
  return std::optional<Milliseconds>{Milliseconds{rounded}};
}

Result<std::optional<std::string>> read_input(const json::Object& arguments, const ArgumentLimits& limits) {
  const json::Value* value = given(arguments, "stdin");
  if (value == nullptr) return std::optional<std::string>{};
  if (!value->is_string()) return refuse(fmt::format("\"stdin\" must be a string, not {}", shown(*value)));
  std::string text = json::text(value->get_string());
  if (text.size() > limits.input_size.count) {
    return refuse(fmt::format("\"stdin\" has {}; at most {} are taken", to_string(Bytes{text.size()}),
                              to_string(limits.input_size)));
  }
  return std::optional<std::string>{std::move(text)};
}

bool is_empty(const json::Value& value, std::initializer_list<std::string_view> empty_texts) {
  if (value.is_array()) return value.get_array().empty();
  if (value.is_object()) return value.get_object().empty();
  return value.is_string() &&
         std::ranges::find(empty_texts, std::string_view(value.get_string())) != empty_texts.end();
}

// Arguments whose feature is not there yet: an empty value says the same as none.
Result<> check_reserved(const json::Object& arguments) {
  const json::Value* files = given(arguments, "files");
  if (files != nullptr && !is_empty(*files, {"", "[]", "{}"})) {
    return refuse("\"files\" is not supported yet: put the data into code or stdin, and leave it out");
  }
  const json::Value* session = given(arguments, "session_id");
  if (session != nullptr && !(session->is_string() && session->get_string().empty())) {
    return refuse("\"session_id\" is not supported yet: every call runs in a fresh workspace; leave it out");
  }
  return {};
}

}  // namespace

Result<RunArguments> read_run_arguments(const json::Object& arguments, const ArgumentLimits& limits) {
  PRIMS_RETURN_ON_ERROR(check_names(arguments));
  PRIMS_RETURN_ON_ERROR(check_reserved(arguments));
  RunArguments out;
  PRIMS_ASSIGN_OR_RETURN(out.code, read_code(arguments, limits));
  PRIMS_ASSIGN_OR_RETURN(out.requirements, read_requirements(arguments));
  PRIMS_ASSIGN_OR_RETURN(out.timeout, read_timeout(arguments, limits));
  PRIMS_ASSIGN_OR_RETURN(out.input, read_input(arguments, limits));
  return out;
}

}  // namespace prims::server

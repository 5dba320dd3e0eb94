#include "layers/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"

namespace prims::layers {
namespace {

constexpr std::size_t kLogLines = 30;
constexpr std::size_t kLongestReason = 700;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](auto part) { return contains(text, part); });
}

/// One line, runs of white space as one blank: uv folds and indents its sentences.
std::string unfolded(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (space && (line.empty() || line.back() == ' ')) continue;
    line += space ? ' ' : c;
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

/// What stands between two texts.
std::optional<std::string> between(std::string_view text, std::string_view before, std::string_view after) {
  const auto start = text.find(before);
  if (start == std::string_view::npos) return std::nullopt;
  const auto from = start + before.size();
  const auto end = text.find(after, from);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(from, end - from));
}

/// The word that ends where `after` starts.
std::optional<std::string> word_before(std::string_view text, std::string_view after) {
  const auto end = text.find(after);
  if (end == std::string_view::npos) return std::nullopt;
  const auto start = text.substr(0, end).rfind(' ');
  return std::string(text.substr(start + 1, end - start - 1));
}

/// uv's chain of reasons, without its advice about its own options.
std::string reason(std::string_view plain) {
  auto text = between(plain, "cause: ", " hint:").value_or("");
  if (text.empty()) {
    const auto start = plain.find("cause: ");
    text = std::string(plain.substr(start == std::string_view::npos ? 0 : start + 7));
  }
  if (text.size() > kLongestReason) text = to_utf8(text.substr(0, kLongestReason)) + " ...";
  return text;
}

std::string bare_name(const std::string& requirement) {
  return requirement.substr(0, requirement.find_first_of("=<>!~[ "));
}

Diagnosis missing(std::string_view plain) {
  const auto name = word_before(plain, " was not found in the package registry").value_or("it");
  return {Cause::missing,
          {.message = fmt::format("The package {} does not exist in the package index.", name),
           .hint = "Check the spelling; the name to install may differ from the name to import (for example "
                   "\"scikit-learn\" is imported as sklearn).",
           .log = {}}};
}

/// The Python versions that a package wants: "Python>=3.12,<3.14.1 Python>3.14.1" becomes ">=3.12,<3.14.1 or
/// >3.14.1".
std::string wanted_python(std::string_view text) {
  std::string wanted;
  std::size_t at = 0;
  while ((at = text.find("Python", at)) != std::string_view::npos) {
    at += 6;
    const auto end = std::min(text.find(' ', at), text.size());
    auto one = text.substr(at, end - at);
    while (one.ends_with(',')) one.remove_suffix(1);
    if (one.empty() || !contains_any(one.substr(0, 1), {"<", ">", "=", "~", "!"})) continue;
    wanted += (wanted.empty() ? "" : " or ") + std::string(one);
  }
  return wanted;
}

Diagnosis needs_python(std::string_view plain, const Interpreter& interpreter) {
  const auto subject = word_before(plain, " depends on").value_or("A requirement");
  const auto start = plain.find(" depends on");
  const auto condition = plain.substr(start, plain.find("we can conclude", start) - start);
  const auto wanted = wanted_python(condition);
  return {Cause::needs_python,
          {.message = fmt::format("{} needs Python {}; here runs Python {}.", subject,
                                  wanted.empty() ? "of another version" : wanted, interpreter.version),
           .hint = fmt::format(
               "Leave the version of {0} open or ask for an older one (requirements: [\"{0}\"]), or let the "
               "server use another Python (setting `python`).",
               bare_name(subject)),
           .log = {}}};
}

std::string build_hint(std::string_view output) {
  if (contains_any(output, {"command 'gcc' failed: No such file", "command 'cc' failed: No such file",
                            "gcc: not found", "error: command 'gcc' failed: None", "Unknown compiler(s)",
                            "No CMAKE_C_COMPILER"})) {
    return "The server's machine has no C compiler. Ask for a version that has a wheel, or install a "
           "compiler there "
           "(Debian: apt-get install build-essential).";
  }
  if (contains(output, "Python.h: No such file")) {
    return "The server's Python has no header files. Ask for a version that has a wheel, or install them "
           "there (Debian: "
           "apt-get install python3-dev).";
  }
  if (contains_any(output, {"Cargo", "rustc", "rust toolchain"})) {
    return "The package needs a Rust compiler. Ask for a version that has a wheel.";
  }
  return "Ask for another version of the package, best one that has a wheel; what failed is in the log.";
}

Diagnosis build_failed(std::string_view output, std::string_view plain) {
  auto name = between(plain, "Failed to build `", "`");
  if (!name) name = between(plain, "Failed to download and build `", "`");
  return {Cause::build_failed,
          {.message = fmt::format("Building {} from source failed.", name.value_or("a package")),
           .hint = build_hint(output),
           .log = {}}};
}

Diagnosis conflict(std::string_view plain) {
  const auto why = reason(plain);
  const auto absent = between(plain, "there is no version of ", " and");
  if (absent && absent->size() < 100) {
    return {Cause::conflict,
            {.message = fmt::format("There is no version of {}.", *absent),
             .hint = fmt::format("Leave the version open: \"{}\".", bare_name(*absent)),
             .log = {}}};
  }
  return {Cause::conflict,
          {.message = "The requirements cannot be met together: " + why,
           .hint = "Loosen or remove one of the versions named.",
           .log = {}}};
}

Diagnosis unreachable() {
  return {Cause::unreachable,
          {.message = "The package index cannot be reached.",
           .hint = "Run without requirements, or try again when the server's machine has a network "
                   "connection; the setting "
                   "`index_url` names another index.",
           .log = {}}};
}

Diagnosis refused(std::string_view status) {
  return {Cause::refused,
          {.message = fmt::format("The package index refuses access (HTTP status {}).", status),
           .hint = "The server's administrator must put valid credentials into the setting `index_url`.",
           .log = {}}};
}

Diagnosis classify(std::string_view output, std::string_view plain, const Interpreter& interpreter) {
  if (contains_any(plain,
                   {"Failed to build", "Failed to download and build", "build backend returned an error"})) {
    return build_failed(output, plain);
  }
  for (const std::string_view status : {"401", "403"}) {
    if (contains(plain, fmt::format("HTTP status client error ({}", status))) return refused(status);
  }
  if (contains_any(plain, {"error sending request", "Failed to fetch", "Request failed after",
                           "HTTP status server error", "network was disabled", "operation timed out"})) {
    return unreachable();
  }
  if (contains(plain, "was not found in the package registry")) return missing(plain);
  if (contains(plain, "current Python version") && contains(plain, " depends on"))
    return needs_python(plain, interpreter);
  if (contains_any(plain,
                   {"no usable wheels", "building from source is disabled", "no wheels with a matching"})) {
    auto found = conflict(plain);
    found.cause = Cause::needs_build;
    return found;
  }
  if (contains(plain, "No solution found")) return conflict(plain);
  if (contains_any(plain, {"Couldn't parse", "Failed to parse", "not a valid", "Invalid requirement"})) {
    return {Cause::invalid,
            {.message = "A requirement cannot be read: " + reason(plain),
             .hint = "A requirement is a name with an optional version: \"pandas\", \"pandas==2.2.3\".",
             .log = {}}};
  }
  return {Cause::other,
          {.message = "The packages could not be installed.",
           .hint = "What the installer said is in the log.",
           .log = {}}};
}

}  // namespace

Diagnosis diagnose(std::string_view output, const Interpreter& interpreter) {
  const auto valid = to_utf8(output);
  auto found = classify(valid, unfolded(valid), interpreter);
  found.error.log = last_lines(valid, kLogLines);
  return found;
}

}  // namespace prims::layers

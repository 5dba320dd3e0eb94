#include "layers/requirements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace prims::layers {
namespace {

constexpr std::string_view kIndexOnly =
    "Only packages of the configured package index can be installed. Name the package instead, for example "
    "\"click\" or "
    "\"click==8.1.7\"; the setting `index_url` names another index.";

constexpr std::string_view kForms =
    "A requirement is a name with an optional version: \"pandas\", \"pandas==2.2.3\", \"numpy>=1.26,<3\", "
    "\"requests[socks]\".";

bool alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool name_character(char c) {
  return alphanumeric(c) || c == '-' || c == '_' || c == '.';
}

/// The requirement for a message: valid, printable and short.
std::string shown(std::string_view given) {
  std::string text;
  for (const char c : to_utf8(given.substr(0, 120))) {
    text += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
  }
  return given.size() > 120 ? to_utf8(text) + "..." : text;
}

DependencyError refuse(std::string_view given, std::string_view reason, std::string_view hint) {
  return DependencyError{.message = fmt::format("The requirement \"{}\" {}.", shown(given), reason),
                         .hint = std::string(hint),
                         .log = {}};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The first code point outside ASCII, as "U+0443".
std::optional<std::string> first_foreign(std::string_view text) {
  const auto at = std::ranges::find_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (at == text.end()) return std::nullopt;
  const auto valid = to_utf8(text.substr(static_cast<std::size_t>(at - text.begin())));
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(valid[i]));
  };
  std::uint32_t point = 0;
  if (byte(0) < 0xE0) {
    point = (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  } else if (byte(0) < 0xF0) {
    point = (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  } else {
    point = (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
  return fmt::format("U+{:04X}", point);
}

/// Forms that are not "a package of the index" at all, told apart so that the answer fits.
std::optional<DependencyError> refuse_form(std::string_view given, std::string_view text) {
  if (text.empty()) return refuse(given, "is empty", kForms);
  if (given.size() > kLongestRequirement) {
    return refuse(given, fmt::format("is longer than {} characters", kLongestRequirement), kForms);
  }
  if (const auto foreign = first_foreign(text)) {
    return refuse(
        given,
        fmt::format("contains the character {}, which looks like another one or is not allowed", *foreign),
        "Package names are plain ASCII; type the name anew.");
  }
  if (std::ranges::any_of(text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; })) {
    return refuse(given, "contains a line break or control character",
                  "Give each requirement as its own list item.");
  }
  if (text.front() == '-') {
    return refuse(given, "is an option of an installer, not a package",
                  std::string(kForms) + " " + std::string(kIndexOnly));
  }
  const bool archive = text.ends_with(".whl") || text.ends_with(".tar.gz") || text.ends_with(".zip");
  const bool path = text.front() == '/' || text.front() == '.' || text.front() == '~' || archive;
  if (text.find("://") != std::string_view::npos || text.find('@') != std::string_view::npos ||
      text.starts_with("git+")) {
    return refuse(given, "is a URL, which the sandbox for installations cannot reach", kIndexOnly);
  }
  if (path)
    return refuse(given, "is a path, and no file of the host or the workspace is visible to installations",
                  kIndexOnly);
  return std::nullopt;
}

/// Reads one requirement from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }

  std::optional<std::string> name() {
    std::size_t size = 0;
    while (size < rest_.size() && name_character(rest_[size])) ++size;
    const auto word = take(size);
    if (word.empty() || !alphanumeric(word.front()) || !alphanumeric(word.back())) return std::nullopt;
    return normalised_name(word);
  }

  /// "[a,b]", sorted; empty when there is none.
  std::optional<std::string> extras() {
    if (!skip('[')) return std::string();
    std::set<std::string> names;
    while (!skip(']')) {
      auto extra = name();
      if (!extra) return std::nullopt;
      names.insert(*std::move(extra));
      if (!skip(',') && (rest_.empty() || rest_.front() != ']')) return std::nullopt;
    }
    return names.empty() ? std::string() : fmt::format("[{}]", fmt::join(names, ","));
  }

  /// "==2.2,<3", sorted; with or without parentheses; empty when there is none.
  std::optional<std::string> specifiers() {
    const bool parenthesised = skip('(');
    std::set<std::string> all;
    while (!rest_.empty() && rest_.front() != ';' && rest_.front() != ')') {
      auto one = specifier();
      if (!one) return std::nullopt;
      all.insert(*std::move(one));
      if (!skip(',')) break;
    }
    if (parenthesised && !skip(')')) return std::nullopt;
    return fmt::format("{}", fmt::join(all, ","));
  }

  /// The environment marker after ";", whose meaning uv checks; only its alphabet is checked here.
  std::optional<std::string> marker() {
    if (!skip(';')) return std::string();
    constexpr std::string_view kPunctuation = " ._-+<>=!~()'\",*/";
    const auto text = trimmed(take(rest_.size()));
    const bool plain = std::ranges::all_of(
        text, [&](char c) { return alphanumeric(c) || kPunctuation.find(c) != std::string_view::npos; });
    if (!plain || text.empty() || text.find_first_of("<>=!in") == std::string_view::npos) return std::nullopt;
    return std::string(text);
  }

 private:
  std::optional<std::string> specifier() {
    std::string operation;
    for (const std::string_view candidate : {"===", "==", "~=", "!=", "<=", ">=", "<", ">"}) {
      if (!rest_.starts_with(candidate)) continue;
      operation = candidate;
      take(candidate.size());
      break;
    }
    std::size_t size = 0;
    while (size < rest_.size() &&
           (name_character(rest_[size]) || rest_[size] == '*' || rest_[size] == '+' || rest_[size] == '!')) {
      ++size;
    }
    const auto version = take(size);
    if (operation.empty() || version.empty() || !alphanumeric(version.front())) return std::nullopt;
    return operation + std::string(version);
  }

  bool skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    take(1);
    return true;
  }

  std::string_view take(std::size_t size) {
    const auto taken = rest_.substr(0, size);
    rest_ = trimmed(rest_.substr(size));
    return taken;
  }

  std::string_view rest_;
};

std::optional<Requirement> parse(std::string_view text) {
  Reader reader(text);
  auto name = reader.name();
  auto extras = name ? reader.extras() : std::nullopt;
  auto specifiers = extras ? reader.specifiers() : std::nullopt;
  auto marker = specifiers ? reader.marker() : std::nullopt;
  if (!marker || !reader.at_end()) return std::nullopt;
  auto line = *name + *extras + *specifiers + (marker->empty() ? "" : " ; " + *marker);
  return Requirement{.name = *std::move(name), .line = std::move(line)};
}

bool in_standard_library(const Requirement& requirement, const Interpreter& interpreter) {
  auto module = requirement.name;
  std::ranges::replace(module, '-', '_');
  return std::ranges::binary_search(interpreter.standard_library, module);
}

std::string standard_library_note(const std::vector<std::string>& names) {
  return fmt::format("{} {} to Python's standard library and {} not installed: import {} without listing {}.",
                     fmt::join(names, ", "), names.size() == 1 ? "belongs" : "belong",
                     names.size() == 1 ? "was" : "were", names.size() == 1 ? "it" : "them",
                     names.size() == 1 ? "it" : "them");
}

}  // namespace

std::vector<std::string> RequirementSet::names() const {
  std::vector<std::string> all;
  for (const auto& requirement : wanted) all.push_back(requirement.name);
  return all;
}

std::string RequirementSet::text() const {
  std::string lines;
  for (const auto& requirement : wanted) lines += requirement.line + "\n";
  return lines;
}

std::string normalised_name(std::string_view name) {
  std::string normal;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && !normal.empty() && normal.back() == '-') continue;
    normal += separator ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return normal;
}

std::variant<Requirement, DependencyError> read_requirement(std::string_view given) {
  const auto text = trimmed(given);
  if (auto refused = refuse_form(given, text)) return *std::move(refused);
  if (auto requirement = parse(text)) return *std::move(requirement);
  return refuse(given, "is not a valid requirement (PEP 508)", kForms);
}

std::variant<RequirementSet, DependencyError> read_requirements(const std::vector<std::string>& given,
                                                                const Interpreter& interpreter) {
  if (given.size() > kMostRequirements) {
    return DependencyError{
        .message = fmt::format("{} requirements were given; at most {} are accepted.", given.size(),
                               kMostRequirements),
        .hint = "List only what the code imports itself; dependencies come along by themselves.",
        .log = {}};
  }
  RequirementSet set;
  std::vector<std::string> standard;
  for (const auto& item : given) {
    auto read = read_requirement(item);
    if (auto* refused = std::get_if<DependencyError>(&read)) return std::move(*refused);
    auto& requirement = std::get<Requirement>(read);
    if (in_standard_library(requirement, interpreter)) {
      standard.push_back(requirement.name);
    } else {
      set.wanted.push_back(std::move(requirement));
    }
  }
  std::ranges::sort(set.wanted, {}, &Requirement::line);
  const auto twice = std::ranges::unique(set.wanted, {}, &Requirement::line);
  set.wanted.erase(twice.begin(), twice.end());
  if (!standard.empty()) set.notes.push_back(standard_library_note(standard));
  return set;
}

}  // namespace prims::layers

#include "layers/script_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace prims::layers {
namespace {

constexpr std::string_view kOpening = "# /// script";
constexpr std::string_view kClosing = "# ///";
constexpr std::size_t kMostDependencies = 200;

std::string_view next_line(std::string_view& rest) {
  const auto end = std::min(rest.find('\n'), rest.size());
  auto line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// The TOML text of a block whose opening line has just been read; nothing when it is not closed. The last
/// closing line of the run of comment lines ends it, as the PEP says.
std::optional<std::string> block_content(std::string_view rest) {
  std::string content;
  std::optional<std::string> closed;
  while (!rest.empty()) {
    const auto line = next_line(rest);
    if (line != "#" && !line.starts_with("# ")) break;
    if (line == kClosing) closed = content;
    content += line.substr(std::min<std::size_t>(2, line.size()));
    content += '\n';
  }
  return closed;
}

std::unexpected<Error> bad(std::string_view what) {
  return fail(Kind::invalid_input,
              fmt::format("the `# /// script` block of the code cannot be read: {}", what));
}

/// Reads the two keys we know from the block's TOML; other keys and tables are passed over.
class BlockReader {
 public:
  explicit BlockReader(std::string_view toml) : rest_(toml) {}

  Result<ScriptBlock> read() {
    ScriptBlock block;
    for (skip_space(); !rest_.empty() && rest_.front() != '['; skip_space()) {
      const auto key = read_key();
      if (key.empty() || rest_.empty() || rest_.front() != '=') return bad("a line is not KEY = VALUE");
      rest_.remove_prefix(1);
      skip_blanks();
      if (key == "dependencies") {
        PRIMS_ASSIGN_OR_RETURN(block.dependencies, read_strings());
      } else if (key == "requires-python") {
        PRIMS_ASSIGN_OR_RETURN(block.requires_python, read_string());
      } else {
        next_line(rest_);
      }
    }
    return block;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }

  /// Blanks, line ends and comments.
  void skip_space() {
    while (!rest_.empty()) {
      if (rest_.front() == '#') {
        next_line(rest_);
      } else if (std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  std::string read_key() {
    std::string key;
    while (!rest_.empty() && rest_.front() != '=' && rest_.front() != '\n') {
      const char c = rest_.front();
      if (c != ' ' && c != '"' && c != '\'') key += c;
      rest_.remove_prefix(1);
    }
    return key;
  }

  Result<std::string> read_string() {
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '"' && quote != '\'') return bad("a value is not a string");
    rest_.remove_prefix(1);
    std::string value;
    while (!rest_.empty() && rest_.front() != quote && rest_.front() != '\n') {
      const bool escaped = quote == '"' && rest_.front() == '\\' && rest_.size() > 1;
      if (escaped) rest_.remove_prefix(1);
      if (escaped && rest_.front() != '"' && rest_.front() != '\\')
        return bad("a string has an escape it does not need");
      value += rest_.front();
      rest_.remove_prefix(1);
    }
    if (rest_.empty() || rest_.front() != quote) return bad("a string is not closed");
    rest_.remove_prefix(1);
    return value;
  }

  Result<std::vector<std::string>> read_strings() {
    std::vector<std::string> values;
    if (rest_.empty() || rest_.front() != '[') return bad("`dependencies` is not a list");
    rest_.remove_prefix(1);
    for (skip_space(); !rest_.empty() && rest_.front() != ']'; skip_space()) {
      if (values.size() == kMostDependencies) return bad("`dependencies` is too long");
      PRIMS_ASSIGN_OR_RETURN(auto value, read_string());
      values.push_back(std::move(value));
      skip_space();
      if (rest_.empty() || (rest_.front() != ',' && rest_.front() != ']'))
        return bad("a comma is missing in `dependencies`");
      if (rest_.front() == ',') rest_.remove_prefix(1);
    }
    if (rest_.empty()) return bad("`dependencies` is not closed");
    rest_.remove_prefix(1);
    return values;
  }

  std::string_view rest_;
};

using Release = std::array<int, 4>;

/// "3.11.7" as numbers, and how many of them were written. Suffixes of pre-releases are passed over.
std::optional<std::pair<Release, std::size_t>> read_release(std::string_view text) {
  Release release{};
  std::size_t count = 0;
  while (count < release.size()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), release[count]);
    if (error != std::errc()) return std::nullopt;
    ++count;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.size() < 2 || text.front() != '.' || std::isdigit(static_cast<unsigned char>(text[1])) == 0)
      break;
    text.remove_prefix(1);
  }
  return std::pair(release, count);
}

bool same_series(const Release& version, const Release& wanted, std::size_t parts) {
  return std::equal(version.begin(), version.begin() + static_cast<std::ptrdiff_t>(parts), wanted.begin());
}

Result<bool> satisfies_one(const Release& version, std::string_view specifier) {
  constexpr std::string_view kOperations[] = {"===", "==", "~=", "!=", "<=", ">=", "<", ">"};
  const auto* operation =
      std::ranges::find_if(kOperations, [&](auto candidate) { return specifier.starts_with(candidate); });
  auto unreadable = [&] {
    return fail(Kind::invalid_input, fmt::format("\"{}\" is not a version specifier", specifier));
  };
  if (operation == std::end(kOperations)) return unreadable();
  auto text = specifier.substr(operation->size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto read = read_release(text);
  if (!read) return unreadable();
  const auto& [wanted, parts] = *read;
  const bool series = text.ends_with(".*");
  const bool equal = series ? same_series(version, wanted, parts) : version == wanted;
  if (*operation == "==" || *operation == "===") return equal;
  if (*operation == "!=") return !equal;
  if (*operation == "~=") return parts > 1 && version >= wanted && same_series(version, wanted, parts - 1);
  if (*operation == "<=") return version <= wanted;
  if (*operation == ">=") return version >= wanted;
  return *operation == "<" ? version < wanted : version > wanted;
}

}  // namespace

Result<std::optional<ScriptBlock>> read_script_block(std::string_view code) {
  std::optional<ScriptBlock> found;
  int number = 0;
  for (auto rest = code; !rest.empty();) {
    ++number;
    if (next_line(rest) != kOpening) continue;
    const auto content = block_content(rest);
    if (!content) continue;
    if (found) return bad(fmt::format("there is a second one at line {}", number));
    PRIMS_ASSIGN_OR_RETURN(found, BlockReader(*content).read());
    // A block is not looked for inside the one just read.
    for (auto lines = std::ranges::count(*content, '\n'); lines >= 0; --lines, ++number) next_line(rest);
  }
  return found;
}

Result<bool> satisfies(std::string_view version, std::string_view specifier) {
  const auto have = read_release(version);
  if (!have) return fail(Kind::invalid_input, fmt::format("\"{}\" is not a version", version));
  bool all = true;
  while (!specifier.empty()) {
    const auto end = std::min(specifier.find(','), specifier.size());
    auto one = specifier.substr(0, end);
    specifier.remove_prefix(std::min(end + 1, specifier.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.empty()) continue;
    PRIMS_ASSIGN_OR_RETURN(const bool holds, satisfies_one(have->first, one));
    all = all && holds;
  }
  return all;
}

}  // namespace prims::layers

#include "server/settings_file.h"

#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

namespace prims::server {
namespace {

// Far beyond what settings need; a file of another kind is not read to its end.
constexpr std::size_t kMaxFileSize = 1 << 20;

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  return std::nullopt;
}

Result<FileValue> read_value(const std::filesystem::path& file, const toml::key& key,
                             const toml::node& node) {
  FileValue value{.key = std::string(key.str()), .line = static_cast<int>(key.source().begin.line)};
  const auto* array = node.as_array();
  value.is_array = array != nullptr;
  const auto unusable = [&](std::string_view what) {
    return fail(Kind::invalid_input,
                fmt::format("{}:{}: {} is {}; write a text, a number, true or false, or a list of texts",
                            file.string(), value.line, value.key, what));
  };
  if (array == nullptr) {
    auto text = scalar_text(node);
    if (!text) return unusable(node.is_table() ? "a table" : "a date or time");
    value.texts.push_back(std::move(*text));
    return value;
  }
  for (const toml::node& item : *array) {
    const auto* text = item.as_string();
    if (text == nullptr) return unusable("a list with something else than texts in it");
    value.texts.push_back(text->get());
  }
  return value;
}

}  // namespace

Result<std::vector<FileValue>> read_settings_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::error_code code;
  if (!in || std::filesystem::is_directory(file, code)) {
    return fail(Kind::not_found, fmt::format("{}: cannot be read", file.string()));
  }
  std::string text(kMaxFileSize, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() == kMaxFileSize)
    return fail(Kind::invalid_input, fmt::format("{}: too large", file.string()));
  const toml::parse_result parsed = toml::parse(text, file.string());
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(Kind::invalid_input, fmt::format("{}:{}: {}", file.string(), error.source().begin.line,
                                                 std::string(error.description())));
  }
  std::vector<FileValue> values;
  for (const auto& [key, node] : parsed.table()) {
    PRIMS_ASSIGN_OR_RETURN(FileValue value, read_value(file, key, node));
    values.push_back(std::move(value));
  }
  std::ranges::sort(values, {}, &FileValue::line);
  return values;
}

}  // namespace prims::server

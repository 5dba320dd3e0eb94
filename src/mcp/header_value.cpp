#include "mcp/header_value.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "base/text.h"

namespace prims::mcp {
namespace {

constexpr std::string_view kPrefix = "=?base64?";
constexpr std::string_view kSuffix = "?=";
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool visible(char c) {
  return c > 0x20 && c < 0x7f;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool has_prefix(std::string_view text) {
  return text.size() >= kPrefix.size() &&
         std::ranges::equal(text.substr(0, kPrefix.size()), kPrefix, {}, lower);
}

bool safe(std::string_view text) {
  if (text.empty()) return true;
  if (!visible(text.front()) || !visible(text.back()) || has_prefix(text)) return false;
  return std::ranges::all_of(text, [](char c) { return visible(c) || c == ' '; });
}

std::string encode_base64(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool padding = i + k > text.size();
      out += padding ? '=' : kAlphabet[group >> (18 - 6 * k) & 63U];
    }
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string out;
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = i < text.size() - padding ? kAlphabet.find(text[i]) : 0;
    if (digit == std::string_view::npos) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U}) out += static_cast<char>(group >> shift & 255U);
    group = 0;
  }
  out.resize(out.size() - padding);
  // One text has one spelling: bits that the padding makes meaningless must be zero.
  if (encode_base64(out) != text) return std::nullopt;
  return out;
}

void collect(const json::Object& schema, std::vector<std::string>& path,
             std::vector<MirroredParameter>& found) {
  constexpr std::size_t kDeepest = 16;
  const json::Object* properties = json::object_field(schema, "properties");
  if (properties == nullptr || path.size() >= kDeepest) return;
  for (const auto& [name, value] : *properties) {
    const json::Object* property = value.if_object();
    if (property == nullptr) continue;
    path.emplace_back(name);
    if (auto header = json::string_field(*property, "x-mcp-header"); header && !header->empty()) {
      found.push_back({*std::move(header), path});
    }
    collect(*property, path, found);
    path.pop_back();
  }
}

bool is_token(std::string_view text) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || kMarks.find(c) != std::string_view::npos;
  });
}

std::optional<std::string> find_fault(const json::Object& schema, std::set<std::string>& seen, int depth) {
  constexpr int kDeepest = 16;
  const json::Object* properties = json::object_field(schema, "properties");
  if (properties == nullptr || depth > kDeepest) return std::nullopt;
  for (const auto& [name, value] : *properties) {
    const json::Object* property = value.if_object();
    if (property == nullptr) continue;
    if (const json::Value* annotation = json::find(*property, "x-mcp-header")) {
      const std::string property_name(name);
      if (!annotation->is_string() || !is_token(annotation->get_string()))
        return property_name + ": x-mcp-header is no header name";
      const auto type = json::string_field(*property, "type");
      if (type != "string" && type != "integer" && type != "boolean")
        return property_name + ": x-mcp-header on this type";
      std::string header = json::text(annotation->get_string());
      std::ranges::transform(header, header.begin(), lower);
      if (!seen.insert(header).second) return property_name + ": x-mcp-header occurs twice";
    }
    if (auto fault = find_fault(*property, seen, depth + 1)) return fault;
  }
  return std::nullopt;
}

}  // namespace

std::string encode_header_value(std::string_view text) {
  if (safe(text)) return std::string(text);
  return std::string(kPrefix) + encode_base64(text) + std::string(kSuffix);
}

std::optional<std::string> decode_header_value(std::string_view value) {
  const bool readable =
      std::ranges::all_of(value, [](char c) { return visible(c) || c == ' ' || c == '\t'; });
  if (!readable) return std::nullopt;
  const bool encoded =
      has_prefix(value) && value.ends_with(kSuffix) && value.size() >= kPrefix.size() + kSuffix.size();
  if (!encoded) return std::string(value);
  value.remove_prefix(kPrefix.size());
  value.remove_suffix(kSuffix.size());
  auto text = decode_base64(value);
  if (text && !is_utf8(*text)) return std::nullopt;
  return text;
}

std::vector<MirroredParameter> mirrored_parameters(const json::Object& schema) {
  std::vector<std::string> path;
  std::vector<MirroredParameter> found;
  collect(schema, path, found);
  return found;
}

std::optional<std::string> mirror_fault(const json::Object& schema) {
  std::set<std::string> seen;
  return find_fault(schema, seen, 0);
}

std::optional<std::string> mirrored_value(const json::Object& arguments,
                                          const std::vector<std::string>& path) {
  const json::Object* level = &arguments;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const json::Value* value = json::find(*level, path[i]);
    if (value == nullptr) return std::nullopt;
    if (i + 1 < path.size()) {
      level = value->if_object();
      if (level == nullptr) return std::nullopt;
    } else if (value->is_string()) {
      return json::text(value->get_string());
    } else if (value->is_number() || value->is_bool()) {
      return json::write(*value);
    }
  }
  return std::nullopt;
}

}  // namespace prims::mcp

#include "egress/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace prims::egress {
namespace {

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

/// RFC 3986 pchar, without the percent sign.
bool is_path_char(char c) {
  return is_unreserved(c) || std::string_view("!$&'()*+,;=:@").contains(c);
}

/// The segment without percent-encoding; nothing when it is malformed or hides a separator or control
/// character.
std::optional<std::string> decode_segment(std::string_view segment) {
  std::string decoded;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '%') {
      if (!is_path_char(segment[i])) return std::nullopt;
      decoded.push_back(segment[i]);
      continue;
    }
    if (i + 2 >= segment.size()) return std::nullopt;
    const auto high = hex_digit(segment[i + 1]);
    const auto low = hex_digit(segment[i + 2]);
    if (!high || !low) return std::nullopt;
    const auto byte = static_cast<unsigned char>(*high * 16 + *low);
    if (byte < 0x20 || byte == 0x7f || byte == '/' || byte == '\\' || byte == '%') return std::nullopt;
    decoded.push_back(static_cast<char>(byte));
    i += 2;
  }
  return decoded;
}

/// A path relative to what precedes it, "a/b/" or empty: plain segments only, the last one may be empty.
bool is_plain_path(std::string_view path) {
  while (!path.empty()) {
    const auto slash = path.find('/');
    const auto segment = decode_segment(path.substr(0, slash));
    if (!segment || segment->empty() || *segment == "." || *segment == "..") return false;
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return true;
}

bool is_plain_query(std::string_view query) {
  return std::ranges::all_of(query,
                             [](char c) { return is_path_char(c) || c == '%' || c == '/' || c == '?'; });
}

/// Cuts "segment/" off the front.
std::optional<std::string_view> take_segment(std::string_view& rest) {
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  const std::string_view segment = rest.substr(0, slash);
  rest.remove_prefix(slash + 1);
  return segment;
}

template <class Number>
std::optional<Number> to_number(std::optional<std::string_view> text) {
  Number number = 0;
  if (!text || (text->starts_with('0') && text->size() > 1)) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

bool is_host(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == ':';
  });
}

std::unexpected<Error> malformed() {
  return fail(Kind::denied, "this is not the path of an index page or of a package file");
}

Result<Target> read_page(std::string_view rest) {
  const auto index = to_number<std::size_t>(take_segment(rest));
  if (!index || !is_plain_path(rest)) return malformed();
  return PageTarget{.index = *index, .rest = std::string(rest)};
}

Result<Target> read_file(std::string_view rest) {
  const auto scheme = take_segment(rest);
  const auto host = take_segment(rest);
  const auto port = to_number<std::uint16_t>(take_segment(rest));
  if (!scheme || (*scheme != "https" && *scheme != "http") || !host || !is_host(*host) || !port)
    return malformed();
  const auto mark = rest.find('?');
  const std::string_view path = rest.substr(0, mark);
  const std::string_view query = mark == std::string_view::npos ? std::string_view() : rest.substr(mark + 1);
  if (path.empty() || !is_plain_path(path) || !is_plain_query(query)) return malformed();
  return FileTarget{.scheme = std::string(*scheme),
                    .host = std::string(*host),
                    .port = *port,
                    .target = "/" + std::string(rest)};
}

}  // namespace

Result<Target> read_target(std::string_view method, std::string_view target) {
  constexpr std::string_view kIndex = "/index/";
  constexpr std::string_view kFile = "/file/";
  if (method != "GET" && method != "HEAD") {
    return fail(Kind::denied, "only GET and HEAD are possible during a package build");
  }
  if (target.starts_with(kIndex)) return read_page(target.substr(kIndex.size()));
  if (target.starts_with(kFile)) return read_file(target.substr(kFile.size()));
  return fail(Kind::denied, "only the package index can be reached during a package build");
}

std::string file_path(const http::Url& url) {
  return fmt::format("/file/{}/{}/{}{}", url.scheme, url.host, url.port, url.target);
}

}  // namespace prims::egress

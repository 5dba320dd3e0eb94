#include "http/url.h"

#include <fmt/format.h>

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>
#include <charconv>

namespace prims::http {
namespace {

namespace urls = boost::urls;

std::uint16_t default_port(std::string_view scheme) {
  return scheme == "https" ? 443 : 80;
}

std::string bracketed(const std::string& host) {
  return host.contains(':') ? "[" + host + "]" : host;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

Result<std::uint16_t> port_of(const urls::url_view& view, std::string_view scheme) {
  const std::string text(view.port());
  if (text.empty()) return default_port(scheme);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) {
    return fail(Kind::invalid_input, "the URL's port is not a port number");
  }
  return port;
}

Result<Url> from_view(const urls::url_view& view) {
  Url url;
  url.scheme = lower(view.scheme());
  if (url.scheme != "http" && url.scheme != "https")
    return fail(Kind::invalid_input, "only http and https URLs work here");
  url.user_info = view.has_userinfo() ? std::string(view.encoded_userinfo()) : std::string();
  url.host = lower(view.host_address());
  if (url.host.empty()) return fail(Kind::invalid_input, "the URL names no host");
  const bool plain = url.host.find_first_of(" \t\r\n/@\\") == std::string::npos && !url.host.contains('\0');
  if (!plain) return fail(Kind::invalid_input, "the URL's host is malformed");
  PRIMS_ASSIGN_OR_RETURN(url.port, port_of(view, url.scheme));
  url.target = std::string(view.encoded_path());
  if (url.target.empty()) url.target = "/";
  if (view.has_query()) url.target.append("?").append(std::string(view.encoded_query()));
  return url;
}

}  // namespace

std::string Url::origin() const {
  return fmt::format("{}://{}:{}", scheme, bracketed(host), port);
}

std::string Url::authority() const {
  if (port == default_port(scheme)) return bracketed(host);
  return fmt::format("{}:{}", bracketed(host), port);
}

std::string Url::text() const {
  return fmt::format("{}://{}{}", scheme, authority(), target);
}

Result<Url> parse_url(std::string_view text) {
  const auto parsed = urls::parse_uri(urls::string_view(text.data(), text.size()));
  if (!parsed) return fail(Kind::invalid_input, fmt::format("not a URL: {}", parsed.error().message()));
  return from_view(*parsed);
}

Result<Url> resolve(const Url& base, std::string_view reference) {
  const std::string base_text = base.text();
  const auto from = urls::parse_uri(base_text);
  const auto to = urls::parse_uri_reference(urls::string_view(reference.data(), reference.size()));
  if (!from || !to) return fail(Kind::invalid_input, "not a URL reference");
  urls::url absolute;
  if (const auto resolved = urls::resolve(*from, *to, absolute); !resolved) {
    return fail(Kind::invalid_input, fmt::format("not a URL reference: {}", resolved.error().message()));
  }
  return from_view(absolute);
}

}  // namespace prims::http

#include "mcp/origin.h"

#include <algorithm>

namespace prims::mcp {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

/// The name in "name", "name:port", "[v6]" or "[v6]:port"; empty when the text is none of these.
std::string_view name_of(std::string_view authority) {
  std::size_t end = authority.find(':');
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return {};
    end = bracket + 1;
  }
  const std::string_view name = authority.substr(0, end);
  const std::string_view rest = authority.substr(name.size());
  if (rest.empty()) return name;
  const std::string_view port = rest.substr(1);
  const bool is_port = rest.front() == ':' && !port.empty() && port.size() <= 5 &&
                       std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  return is_port ? name : std::string_view{};
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool is_local(std::string_view name) {
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

}  // namespace

bool host_allowed(std::string_view host, const OriginRules& rules) {
  const std::string given = lower(host);
  const std::string_view name = name_of(given);
  if (name.empty()) return false;
  return is_local(name) || contains(rules.hosts, name) || contains(rules.hosts, "*");
}

bool origin_allowed(std::string_view origin, const OriginRules& rules) {
  const std::string given = lower(origin);
  if (contains(rules.origins, given)) return true;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (given.starts_with(scheme)) return is_local(name_of(std::string_view(given).substr(scheme.size())));
  }
  return false;
}

}  // namespace prims::mcp

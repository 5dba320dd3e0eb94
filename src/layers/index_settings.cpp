#include "layers/index_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <sstream>

#include "layers/uv_tool.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

/// uv lets an index have a name: "NAME=URL".
std::string without_name(const std::string& index) {
  const auto scheme = index.find("://");
  const auto equals = index.find('=');
  return equals != std::string::npos && equals < scheme ? index.substr(equals + 1) : index;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(without_name(word));
  return list;
}

void add_file(const fs::path& source, const std::string& target, std::vector<sandbox::FileEntry>& into) {
  std::ifstream stream(source, std::ios::binary);
  if (!stream) return;
  std::ostringstream text;
  text << stream.rdbuf();
  into.push_back({.path = target, .content = std::move(text).str()});
}

std::vector<sandbox::FileEntry> uv_configuration(const Lookup& environment) {
  std::vector<sandbox::FileEntry> files;
  const auto home = environment("HOME");
  auto user = environment("XDG_CONFIG_HOME");
  if (!user && home) user = *home + "/.config";
  if (const auto named = environment("UV_CONFIG_FILE")) {
    add_file(*named, kUvUserFile, files);
  } else if (user) {
    add_file(fs::path(*user) / "uv/uv.toml", kUvUserFile, files);
  }
  add_file("/etc/uv/uv.toml", "/etc/uv/uv.toml", files);
  return files;
}

std::string identity_of(const IndexSettings& settings) {
  auto text = fmt::format("uv {}\n{}\n{}\n", uv_version(), settings.default_url.value_or("(uv's own)"),
                          fmt::join(settings.extra, " "));
  if (settings.default_url) return text;
  for (const auto& file : settings.uv_files) text += file.path + "\n" + file.content + "\n";
  return text;
}

}  // namespace

IndexSettings read_index_settings(const StoreOptions& options, const Lookup& environment) {
  IndexSettings settings;
  settings.extra = options.extra_index_urls;
  if (!options.index_url.empty()) {
    settings.default_url = options.index_url;
  } else {
    for (const char* name : {"UV_INDEX", "UV_EXTRA_INDEX_URL"}) {
      for (auto& url : words(environment(name).value_or(""))) settings.extra.push_back(std::move(url));
    }
    auto given = environment("UV_DEFAULT_INDEX");
    if (!given) given = environment("UV_INDEX_URL");
    if (given && !given->empty()) settings.default_url = without_name(*given);
  }
  if (!settings.default_url) settings.uv_files = uv_configuration(environment);
  settings.identity = identity_of(settings);
  return settings;
}

std::optional<std::string> index_in_error(std::string_view output, std::string_view package) {
  constexpr std::string_view kBefore = "for url (";
  const auto start = output.find(kBefore);
  if (start == std::string_view::npos) return std::nullopt;
  const auto from = start + kBefore.size();
  const auto end = output.find(')', from);
  if (end == std::string_view::npos) return std::nullopt;
  auto url = output.substr(from, end - from);
  const auto suffix = fmt::format("/{}/", package);
  if (!url.ends_with(suffix) || url.find("://") == std::string_view::npos) return std::nullopt;
  return std::string(url.substr(0, url.size() - suffix.size() + 1));
}

std::string without_credentials(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  const auto host = scheme + 3;
  const auto path = std::min(url.find('/', host), url.size());
  const auto at = url.substr(0, path).rfind('@');
  if (at == std::string_view::npos || at < host) return std::string(url);
  return std::string(url.substr(0, host)) + std::string(url.substr(at + 1));
}

}  // namespace prims::layers

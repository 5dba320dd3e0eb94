#include "layers/store.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include "http/url.h"
#include "layers/package_store.h"

namespace prims::layers {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Result<> check(const IndexSettings& indexes) {
  auto all = indexes.extra;
  if (indexes.default_url) all.push_back(*indexes.default_url);
  for (const auto& url : all) {
    if (const auto read = http::parse_url(url); !read) {
      return fail(Kind::invalid_input,
                  fmt::format("the package index \"{}\" (setting `index_url` or `extra_index_urls`) "
                              "cannot be used: {}",
                              without_credentials(url), read.error().message));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Store>> Store::create(StoreOptions options, sandbox::Host& host,
                                             io::Workers& workers) {
  std::error_code failed;
  for (const char* name : {"", "tools", "locks", "layers", "builds", "resolutions", "uv-cache", "compiled"}) {
    const auto directory = options.state / name;
    std::filesystem::create_directories(directory, failed);
    if (failed) return fail_errno("make " + directory.string(), failed.value());
  }
  auto indexes = read_index_settings(options, variable);
  PRIMS_RETURN_ON_ERROR(check(indexes));
  return std::make_unique<PackageStore>(std::move(options), std::move(indexes), host, workers);
}

}  // namespace prims::layers

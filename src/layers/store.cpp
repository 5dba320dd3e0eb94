#include "layers/store.h"

#include <sys/stat.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include "layers/package_store.h"

namespace prims::layers {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace

Result<std::unique_ptr<Store>> Store::create(StoreOptions options, sandbox::Host& host,
                                             io::Workers& workers) {
  std::error_code failed;
  for (const char* name : {"", "tools", "locks", "layers", "builds", "resolutions", "uv-cache"}) {
    const auto directory = options.state / name;
    std::filesystem::create_directories(directory, failed);
    if (failed) return fail_errno("make " + directory.string(), failed.value());
  }
  auto indexes = read_index_settings(options, variable);
  return std::make_unique<PackageStore>(std::move(options), std::move(indexes), host, workers);
}

}  // namespace prims::layers

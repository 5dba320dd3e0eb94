#include "layers/lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "layers/hash.h"
#include "layers/requirements.h"

namespace prims::layers {
namespace {

// 160 bits: nobody finds two locks of one name.
constexpr std::size_t kHashLength = 40;

}  // namespace

std::vector<std::string> locked_packages(std::string_view lock) {
  std::vector<std::string> packages;
  while (!lock.empty()) {
    const auto end = std::min(lock.find('\n'), lock.size());
    const auto line = lock.substr(0, end);
    lock.remove_prefix(std::min(end + 1, lock.size()));
    // Hashes and comments are indented.
    if (line.empty() || line.front() == ' ' || line.front() == '#' || line.front() == '-') continue;
    const auto pin = line.substr(0, line.find_first_of(" \\;"));
    if (pin.find("==") != std::string_view::npos) packages.emplace_back(pin);
  }
  std::ranges::sort(packages);
  return packages;
}

bool locks_package(std::string_view lock, std::string_view name) {
  return std::ranges::any_of(locked_packages(lock), [&](const std::string& pin) {
    return normalised_name(std::string_view(pin).substr(0, pin.find_first_of("=["))) == name;
  });
}

std::string layer_hash(std::string_view lock, const Interpreter& interpreter) {
  return sha256_hex(fmt::format("{}\n{}\n{}", kLayerFormat, interpreter.key, lock)).substr(0, kHashLength);
}

}  // namespace prims::layers

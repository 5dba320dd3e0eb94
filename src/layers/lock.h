// What uv resolved: exact versions with hashes, as requirements-file text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layers/store.h"

namespace prims::layers {

/// Part of every layer's name. Changes whenever the content of a layer comes about differently.
inline constexpr int kLayerFormat = 1;

/// "name==version" of each entry, sorted.
std::vector<std::string> locked_packages(std::string_view lock);

/// Whether the lock names that package (normalised name).
bool locks_package(std::string_view lock, std::string_view name);

/// The layer's name: lock, interpreter and format.
std::string layer_hash(std::string_view lock, const Interpreter& interpreter);

}  // namespace prims::layers

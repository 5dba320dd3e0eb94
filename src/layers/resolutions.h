// Remembers what requirement sets resolved to, in memory and in the state directory, so that a known set
// costs no network and no process.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"

namespace prims::layers {

struct Resolution {
  std::string lock;          ///< uv's lock text
  std::string layer;         ///< the name of the layer it stands for
  bool needs_build = false;  ///< some package has no wheel
  std::string note;          ///< for the caller; may be empty
  std::chrono::system_clock::time_point made;
};

class Resolutions {
 public:
  Resolutions(std::filesystem::path directory, std::chrono::hours lifetime);

  /// What is known, however old.
  std::optional<Resolution> find(const std::string& key);

  /// Whether the index need not be asked again.
  bool fresh(const Resolution& resolution) const;

  /// Keeps it, replacing an older one.
  Result<> remember(const std::string& key, Resolution resolution);

 private:
  std::filesystem::path file_of(const std::string& key) const;

  std::filesystem::path directory_;
  std::chrono::hours lifetime_;
  std::map<std::string, Resolution> known_;  // bounded: emptied when full, the directory has everything
};

/// Removes what was made a long time ago. Blocks.
void sweep_resolutions(const std::filesystem::path& directory);

}  // namespace prims::layers

// Remembers what requirement sets resolved to, in memory and in the state directory, so that a known set
// costs no network and no process.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
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

  /// What is known, however old. Reads a file for a key that has not been asked for before, or is not fresh.
  std::shared_ptr<const Resolution> find(const std::string& key);

  /// Whether the index need not be asked again.
  bool fresh(const Resolution& resolution) const;

  /// Keeps it in memory, replacing an older one.
  void remember(const std::string& key, Resolution resolution);

  /// Keeps it in the directory. Blocks and may run on a worker.
  Result<> write(const std::string& key, const Resolution& resolution) const;

 private:
  std::filesystem::path file_of(const std::string& key) const;

  std::filesystem::path directory_;
  std::chrono::hours lifetime_;
  // Shared with whoever is using one: a lock is long.
  std::map<std::string, std::shared_ptr<const Resolution>>
      known_;  // bounded: emptied when full, the directory has everything
};

/// Removes what was made a long time ago. Blocks.
void sweep_resolutions(const std::filesystem::path& directory);

}  // namespace prims::layers

// Where finished layers stand. A layer appears by one rename, complete, and is never changed afterwards.
//
//   layers/HASH/env/        the virtual environment, the only part that sandboxes see
//   layers/HASH/layer.json  packages, size, the boot in which it was made or checked
//   layers/HASH/use         locked (shared) by whoever uses the layer; its time is that of the last use
//
// Nobody waits for the disk: a layer that was made in an earlier boot is measured once, and goes when its
// files have not all reached the disk.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "layers/build_directory.h"
#include "layers/store.h"
#include "layers/tree.h"

namespace prims::layers {

/// On one thread, but for collect(), which blocks and may run on a worker.
class Shelf {
 public:
  Shelf(std::filesystem::path layers, std::filesystem::path builds);

  /// The layer of that name with a lease. A few system calls, no walk.
  std::optional<Layer> find(const std::string& hash);

  /// Makes `build/env` the layer of that name; the directory has been finished (finish_tree). When another
  /// process was quicker its layer is the result.
  Result<Layer> publish(const BuildDirectory& build, const std::string& hash,
                        std::vector<std::string> packages, TreeSize size);

  /// Removes least recently used layers until all together fit. One in use, also by another process, stays.
  /// Returns how many went.
  std::size_t collect(Bytes limit) const;

 private:
  Lease lease(const std::string& hash);

  std::filesystem::path layers_;
  std::filesystem::path builds_;
  // All users in this process share one descriptor.
  std::map<std::string, std::weak_ptr<const void>> leases_;
};

}  // namespace prims::layers

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
#include "base/deadline.h"
#include "layers/build_directory.h"
#include "layers/store.h"
#include "layers/tree.h"

namespace prims::layers {

/// On one thread, but for the const members: they block and may run on a worker.
class Shelf {
 public:
  Shelf(std::filesystem::path layers, std::filesystem::path builds);

  /// The layer of that name with a lease, unless it comes from an earlier boot and has not been checked. What
  /// was read once is kept in memory: while a lease exists this costs no system call, and otherwise a few
  /// that do not wait for the disk.
  std::optional<Layer> find(const std::string& hash);

  /// Measures a layer of an earlier boot. A damaged one goes.
  void check(const std::string& hash) const;

  /// Makes `build/env` the layer of that name; the directory has been finished (finish_tree). When another
  /// process was quicker its layer stays.
  Result<> publish(const BuildDirectory& build, const std::string& hash, std::vector<std::string> packages,
                   TreeSize size) const;

  /// Removes least recently used layers until all together fit. One in use, also by another process, stays.
  /// Returns how many went.
  std::size_t collect(Bytes limit) const;

 private:
  struct Known {
    std::weak_ptr<const void> lease;  // all users in this process share one descriptor
    Clock::time_point touched;        // when the layer's time of last use was written
    std::vector<std::string> packages;
  };

  Lease lease(const std::string& hash, Known& known) const;

  std::filesystem::path layers_;
  std::filesystem::path builds_;
  // A name stands for one content, so what is known of a layer holds although it may go and come back.
  std::map<std::string, Known> known_;  // bounded: emptied of what nobody uses when full
};

}  // namespace prims::layers

// The working directory of one call on the host: output/ for artifacts, mounts/ for inputs, the rest scratch.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>

#include "base/empty_tree.h"
#include "base/result.h"
#include "io/task.h"
#include "io/workers.h"
#include "session/state.h"

namespace prims::session {

class Workspace {
 public:
  static constexpr const char* kOutput = "output";
  static constexpr const char* kMounts = "mounts";

  /// A fresh, empty one that only `owner` (Host::workspace_owner()) can enter. Throw-away: gone with this
  /// process at the latest. `state` is prepared.
  static Result<std::unique_ptr<Workspace>> create(const State& state, uid_t owner);

  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  /// Removes the tree on this thread unless remove() did.
  ~Workspace();

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path output() const { return output_of(directory_); }
  static std::filesystem::path output_of(const std::filesystem::path& directory) {
    return directory / kOutput;
  }

  /// As it was made.
  const std::shared_ptr<const EmptyTree>& made() const { return made_; }

  /// Removes the tree on a worker, whatever the guest left in it. No process of the guest may live any more.
  /// This object outlives the Task.
  io::Task<Result<>> remove(io::Workers* workers);

 private:
  explicit Workspace(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::filesystem::path directory_;
  std::shared_ptr<const EmptyTree> made_;  // shared with whoever measures it
  bool removed_ = false;
};

}  // namespace prims::session

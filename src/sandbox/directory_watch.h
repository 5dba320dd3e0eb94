// Bytes below directories that a sandbox writes to, measured by walking them on a background thread.
//
// A walk makes directories readable that are not, never follows a symbolic link, never leaves its file
// system, and is bounded. What is found lags behind what is written by the pause between walks (at least 100
// ms, ten times the duration of the last walk, at most 2 s); a last walk after the end leaves no gap behind.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/empty_tree.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "sandbox/background.h"
#include "sandbox/outcome.h"

namespace prims::sandbox {

/// Used blocks below `path`, every file once however many names it has. More than `most` entries, or names
/// nested too deep to be reached, count as `too_many`.
struct TreeSize {
  Bytes bytes;
  bool too_many = false;
};
inline constexpr std::size_t kMostEntries = 1'000'000;
Result<TreeSize> measure_tree(const std::string& path, std::size_t most = kMostEntries);

/// Used blocks of files on `device` that have no name any more and that one of these processes holds open.
Bytes measure_nameless(dev_t device, const std::vector<pid_t>& processes);

struct WatchedDirectory {
  std::string path;
  Bytes limit;
  std::shared_ptr<const EmptyTree> made = nullptr;  ///< what it was made as, if it is new
};

class DirectoryWatch {
 public:
  /// Called on the walker's thread.
  using Processes = std::function<std::vector<pid_t>()>;

  /// `walker` must outlive `closer`, and that must outlive this: a thread apart for last walks of small
  /// trees, which somebody waits for. Files that `processes` have deleted and still hold open count too.
  DirectoryWatch(Background& walker, Background& closer, Processes processes);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  /// More than its limit below the directory is a breach. Walks begin with the first look at breached().
  Result<> watch(WatchedDirectory directory);

  /// Ends the watch with one more walk, for when nobody writes any more. The descriptor becomes readable when
  /// it is done; there is none when nothing needs one.
  UniqueFd close();

  std::optional<DiskLimit> breached();

  /// Of all directories, at the last walk.
  Bytes used() const;

 private:
  struct State;

  Background& walker_;
  Background& closer_;
  bool walks_ = false;
  std::shared_ptr<State> state_;  // shared with the jobs on these threads, which may end after this
};

}  // namespace prims::sandbox

// Bytes below directories that a sandbox writes to, measured by walking them on a background thread.
//
// A walk never follows a symbolic link, never leaves its file system, and is bounded. What is found lags
// behind what is written by the pause between walks (at least 100 ms, ten times the duration of the last
// walk, at most 2 s).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/background.h"
#include "sandbox/outcome.h"

namespace prims::sandbox {

/// Used blocks below `path`, every file once however many names it has. More than `kMostEntries` entries, or
/// names nested too deep to be reached, count as `too_many`.
struct TreeSize {
  Bytes bytes;
  bool too_many = false;
};
inline constexpr std::size_t kMostEntries = 1'000'000;
Result<TreeSize> measure_tree(const std::string& path);

class DirectoryWatch {
 public:
  /// `walker` must outlive this.
  explicit DirectoryWatch(Background& walker);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  /// More than `limit` below `path` is a breach.
  Result<> watch(std::string path, Bytes limit);

  std::optional<DiskLimit> breached() const;

  /// Of all directories, at the last walk.
  Bytes used() const;

 private:
  struct State;

  Background& walker_;
  std::shared_ptr<State> state_;  // shared with the job on the walker, which may end after this
};

}  // namespace prims::sandbox

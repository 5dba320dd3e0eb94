// Directories that are being filled. Whoever fills one holds a lock beside it; when the holder dies, however
// it dies, the lock is free and the next sweep removes what is left.
//
//   builds/TOKEN.lock   held (flock) from before TOKEN appears until after it is gone
//   builds/TOKEN/       the work itself
#pragma once

#include <filesystem>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::layers {

/// Move-only; its end removes the directory. Making and removing one blocks.
class BuildDirectory {
 public:
  static Result<BuildDirectory> create(const std::filesystem::path& builds);
  BuildDirectory(BuildDirectory&& other) noexcept
      : lock_(std::move(other.lock_)), path_(std::exchange(other.path_, {})) {}
  BuildDirectory& operator=(BuildDirectory&&) = delete;
  ~BuildDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  BuildDirectory(UniqueFd lock, std::filesystem::path path)
      : lock_(std::move(lock)), path_(std::move(path)) {}

  UniqueFd lock_;
  std::filesystem::path path_;
};

/// Removes what dead processes left. Directories in use, also by other processes, are not touched.
void sweep_builds(const std::filesystem::path& builds);

}  // namespace prims::layers

#include "layers/build_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <system_error>
#include <tuple>

#include "base/log.h"
#include "base/random.h"
#include "session/remove_tree.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockSuffix = ".lock";
constexpr int kAttempts = 8;

fs::path lock_of(const fs::path& directory) {
  auto file = directory;
  file += kLockSuffix;
  return file;
}

/// Whether `fd` is still the file of that name: a sweep may have removed it between open and lock.
bool still_named(int fd, const fs::path& file) {
  struct stat held{};
  struct stat named{};
  return ::fstat(fd, &held) == 0 && ::stat(file.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

/// The lock when nobody else holds it.
std::optional<UniqueFd> try_lock(const fs::path& file, int flags) {
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !still_named(fd.get(), file)) return std::nullopt;
  return fd;
}

void remove_both(const fs::path& directory) {
  if (const auto removed = session::remove_tree(directory); !removed) {
    // The lock file stays, so a later sweep tries again.
    log::warning("cannot remove {}: {}", directory.string(), removed.error().message);
    return;
  }
  ::unlink(lock_of(directory).c_str());
}

/// Left by a removal that was itself interrupted: no lock beside it, and old.
bool is_orphan(const fs::directory_entry& entry) {
  std::error_code failed;
  const auto age = fs::file_time_type::clock::now() - entry.last_write_time(failed);
  return !failed && age > std::chrono::hours(1) && entry.is_directory(failed) &&
         !fs::exists(lock_of(entry.path()), failed);
}

}  // namespace

Result<BuildDirectory> BuildDirectory::create(const fs::path& builds) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto path = builds / random_token();
    auto lock = try_lock(lock_of(path), O_CREAT | O_EXCL);
    // A sweep that comes between making the file and locking it takes it away.
    if (!lock) continue;
    if (::mkdir(path.c_str(), 0700) != 0) return fail_errno(path.string());
    return BuildDirectory(*std::move(lock), path);
  }
  return fail_errno("make a lock file below " + builds.string());
}

BuildDirectory::~BuildDirectory() {
  if (!path_.empty()) remove_both(path_);
}

void sweep_builds(const fs::path& builds) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(builds, failed)) {
    auto directory = entry.path();
    if (directory.extension() != kLockSuffix) {
      if (is_orphan(entry)) std::ignore = session::remove_tree(directory);
      continue;
    }
    const auto lock = try_lock(directory, 0);
    if (lock) remove_both(directory.replace_extension());
  }
}

}  // namespace prims::layers

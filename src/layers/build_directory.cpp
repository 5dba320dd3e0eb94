#include "layers/build_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <system_error>

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

/// Entry by entry: what an interrupted removal leaves beside an entry is then still inside the locked
/// directory.
Result<> empty(const fs::path& directory) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    PRIMS_RETURN_ON_ERROR(session::remove_tree(entry.path()));
  }
  return {};
}

void remove_both(const fs::path& directory) {
  const auto emptied = empty(directory);
  if (!emptied || (::rmdir(directory.c_str()) != 0 && errno != ENOENT)) {
    // The lock file stays, so a later sweep tries again.
    log::warning("cannot remove {}: {}", directory.string(),
                 emptied ? errno_text(errno) : emptied.error().message);
    return;
  }
  ::unlink(lock_of(directory).c_str());
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
    if (directory.extension() != kLockSuffix) continue;
    const auto lock = try_lock(directory, 0);
    if (lock) remove_both(directory.replace_extension());
  }
}

}  // namespace prims::layers

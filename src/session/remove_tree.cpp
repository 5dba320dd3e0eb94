#include "session/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace prims::session {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Listing = std::unique_ptr<DIR, CloseDirectory>;

// chmod of exactly this directory entry: a link in its place is refused by O_NOFOLLOW, and /proc names the
// open entry.
void unlock_directory(int parent, const std::string& name) {
  const UniqueFd entry(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (entry) ::chmod(fmt::format("/proc/self/fd/{}", entry.get()).c_str(), 0700);
}

// Directories wait in `queue_` under consecutive numbers; each one is emptied in turn, its sub-directories
// joining the end.
class Remover {
 public:
  Remover(UniqueFd queue, std::string shown) : queue_(std::move(queue)), shown_(std::move(shown)) {}

  Result<> adopt(int parent, const std::string& name) {
    const std::string number = std::to_string(end_);
    if (::renameat(parent, name.c_str(), queue_.get(), number.c_str()) != 0) {
      // Moving a directory rewrites its "..", which needs write permission on it.
      if (errno != EACCES && errno != EPERM) return failed();
      unlock_directory(parent, name);
      if (::renameat(parent, name.c_str(), queue_.get(), number.c_str()) != 0) return failed();
    }
    ++end_;
    return {};
  }

  Result<> run() {
    for (; begin_ < end_; ++begin_) PRIMS_RETURN_ON_ERROR(remove_directory(std::to_string(begin_)));
    return {};
  }

 private:
  std::unexpected<Error> failed() const { return fail_errno(fmt::format("remove {}", shown_)); }

  Result<> remove_directory(const std::string& name) {
    PRIMS_ASSIGN_OR_RETURN(const Listing listing, open_listing(name));
    if (!listing) return {};
    // Removing while listing may skip entries on some file systems; an emptied directory ends the loop.
    for (bool progress = true; progress;) {
      PRIMS_ASSIGN_OR_RETURN(progress, remove_entries(listing.get()));
      if (::unlinkat(queue_.get(), name.c_str(), AT_REMOVEDIR) == 0) return {};
      if (errno != ENOTEMPTY && errno != EEXIST) return failed();
      ::rewinddir(listing.get());
    }
    errno = ENOTEMPTY;
    return failed();
  }

  // Null: the entry was no directory and is gone already.
  Result<Listing> open_listing(const std::string& name) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    UniqueFd fd(::openat(queue_.get(), name.c_str(), kFlags));
    if (!fd && errno == EACCES) {
      unlock_directory(queue_.get(), name);
      fd = UniqueFd(::openat(queue_.get(), name.c_str(), kFlags));
    }
    if (!fd) {
      if (::unlinkat(queue_.get(), name.c_str(), 0) == 0) return Listing();
      return failed();
    }
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return failed();
    if ((info.st_mode & 0700U) != 0700U && ::fchmod(fd.get(), 0700) != 0) return failed();
    Listing listing(::fdopendir(fd.get()));
    if (!listing) return failed();
    static_cast<void>(fd.release());
    return listing;
  }

  // Whether anything went away.
  Result<bool> remove_entries(DIR* listing) {
    const int fd = ::dirfd(listing);
    bool progress = false;
    while (const dirent* entry = ::readdir(listing)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (entry->d_type != DT_DIR && ::unlinkat(fd, name.c_str(), 0) == 0) {
        progress = true;
        continue;
      }
      if (entry->d_type != DT_DIR && errno != EISDIR) return failed();
      if (::unlinkat(fd, name.c_str(), AT_REMOVEDIR) != 0) PRIMS_RETURN_ON_ERROR(adopt(fd, name));
      progress = true;
    }
    return progress;
  }

  UniqueFd queue_;
  std::string shown_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace

Result<> remove_tree(const std::filesystem::path& tree) {
  const std::filesystem::path parent = tree.parent_path();
  const std::string shown = to_utf8(tree.string());
  const UniqueFd parent_fd(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent_fd) {
    if (errno == ENOENT) return {};
    return fail_errno(shown);
  }
  struct stat info{};
  if (::fstatat(parent_fd.get(), tree.filename().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(shown);
  }
  if (!S_ISDIR(info.st_mode)) {
    if (::unlinkat(parent_fd.get(), tree.filename().c_str(), 0) == 0 || errno == ENOENT) return {};
    return fail_errno(shown);
  }
  const std::string queue = fmt::format(".removing-{}", random_token());
  if (::mkdirat(parent_fd.get(), queue.c_str(), 0700) != 0) return fail_errno(shown);
  UniqueFd queue_fd(
      ::openat(parent_fd.get(), queue.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!queue_fd) return fail_errno(shown);
  Remover remover(std::move(queue_fd), shown);
  PRIMS_RETURN_ON_ERROR(remover.adopt(parent_fd.get(), tree.filename()));
  PRIMS_RETURN_ON_ERROR(remover.run());
  if (::unlinkat(parent_fd.get(), queue.c_str(), AT_REMOVEDIR) != 0) return fail_errno(shown);
  return {};
}

}  // namespace prims::session

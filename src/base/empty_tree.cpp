#include "base/empty_tree.h"

#include <algorithm>
#include <utility>

namespace prims {
namespace {

/// Longer than two ticks of the slowest kernel clock (HZ=100), by which file times may go.
constexpr Milliseconds kClockStep{25};
constexpr std::uint64_t kBlock = 512;  // what st_blocks counts in

}  // namespace

Result<EmptyTree> EmptyTree::of(std::vector<std::string> directories) {
  EmptyTree tree;
  for (std::string& path : directories) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return fail_errno("stat " + path);
    if (!S_ISDIR(status.st_mode)) return fail_errno("stat " + path, ENOTDIR);
    tree.size_.count += static_cast<std::uint64_t>(status.st_blocks) * kBlock;
    tree.directories_.push_back({std::move(path), status.st_ino, status.st_ctim});
  }
  tree.made_ = Clock::now();
  return tree;
}

bool EmptyTree::untouched_since(Clock::time_point first) const {
  if (first - made_ < kClockStep) return false;
  return std::ranges::all_of(directories_, [](const Directory& known) {
    struct stat now{};
    return ::lstat(known.path.c_str(), &now) == 0 && now.st_ino == known.inode &&
           now.st_ctim.tv_sec == known.changed.tv_sec && now.st_ctim.tv_nsec == known.changed.tv_nsec;
  });
}

}  // namespace prims

#include "sandbox/directory_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace prims::sandbox {
namespace {

constexpr Milliseconds kLeastPause{100};
constexpr Milliseconds kMostPause{2000};
constexpr int kPausePerWalk = 10;
/// What a last walk may take before it goes among those that take long: a few milliseconds.
constexpr std::size_t kFewEntries = 2000;
constexpr std::uint64_t kBlock = 512;  // what st_blocks counts in, whatever the file system's own size

UniqueFd open_at(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

/// Gives the owner back the right to read and pass this very directory, wherever it is by now. Where guest
/// and server are one user, a guest that takes away its own rights hides nothing.
void make_readable(int directory) {
  constexpr mode_t kNeeded = S_IRUSR | S_IXUSR;
  struct stat status{};
  if (::fstat(directory, &status) != 0 || (status.st_mode & kNeeded) == kNeeded) return;
  if (status.st_uid != ::geteuid()) return;
  (void)::chmod(fmt::format("/proc/self/fd/{}", directory).c_str(), (status.st_mode & 07777) | kNeeded);
}

/// The directory for reading.
UniqueFd open_below(int root, const std::string& path) {
  UniqueFd directory = open_at(root, path, O_RDONLY);
  if (!directory && errno == EACCES) {
    const bool itself = path == ".";
    const UniqueFd handle = itself ? UniqueFd() : open_at(root, path, O_PATH);
    make_readable(itself ? root : handle.get());
    directory = open_at(root, path, O_RDONLY);
  }
  if (directory) make_readable(directory.get());
  return directory;
}

/// Holds one descriptor however deep the tree is: directories that wait are paths, opened from the root
/// again.
class TreeWalk {
 public:
  TreeWalk(UniqueFd root, std::size_t most) : root_(std::move(root)), most_(most) {}

  TreeSize run() {
    waiting_.emplace_back(".");
    while (!waiting_.empty() && !size_.too_many) {
      const std::string path = std::move(waiting_.back());
      waiting_.pop_back();
      UniqueFd directory = open_below(root_.get(), path);
      if (directory) {
        read(std::move(directory), path);
      } else if (errno == ENAMETOOLONG) {
        size_.too_many = true;
      }  // anything else: it is gone, or it was never a directory of this tree
    }
    return size_;
  }

 private:
  void read(UniqueFd directory, const std::string& path) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(directory.get()), ::closedir);
    if (!stream) return;
    const int fd = directory.release();
    while (const dirent* entry = ::readdir(stream.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries_ > most_) size_.too_many = true;
      if (size_.too_many) return;
      struct stat status{};
      if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      count(status);
      if (S_ISDIR(status.st_mode)) waiting_.push_back(path + '/' + entry->d_name);
    }
  }

  void count(const struct stat& status) {
    const bool has_other_names = !S_ISDIR(status.st_mode) && status.st_nlink > 1;
    if (has_other_names && !linked_.insert(status.st_ino).second) return;
    size_.bytes.count += static_cast<std::uint64_t>(status.st_blocks) * kBlock;
  }

  UniqueFd root_;
  const std::size_t most_;
  std::vector<std::string> waiting_;
  std::set<ino_t> linked_;
  std::size_t entries_ = 0;
  TreeSize size_;
};

}  // namespace

Result<TreeSize> measure_tree(const std::string& path, std::size_t most) {
  UniqueFd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!root) return fail_errno("open " + path);
  return TreeWalk(std::move(root), most).run();
}

Bytes measure_nameless(dev_t device, const std::vector<pid_t>& processes) {
  Bytes sum;
  std::set<ino_t> counted;
  for (const pid_t pid : processes) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(fmt::format("/proc/{}/fd", pid).c_str()),
                                                     ::closedir);
    if (!stream) continue;
    while (const dirent* entry = ::readdir(stream.get())) {
      struct stat status{};
      if (::fstatat(::dirfd(stream.get()), entry->d_name, &status, 0) != 0) continue;
      const bool nameless = S_ISREG(status.st_mode) && status.st_nlink == 0 && status.st_dev == device;
      if (nameless && counted.insert(status.st_ino).second) {
        sum.count += static_cast<std::uint64_t>(status.st_blocks) * kBlock;
      }
    }
  }
  return sum;
}

struct DirectoryWatch::State {
  struct Directory {
    WatchedDirectory watched;
    dev_t device = 0;
    Clock::time_point since;
    Bytes used;
  };

  explicit State(Processes listing) : processes(std::move(listing)) {}

  const Processes processes;
  std::atomic<bool> stopped = false;
  mutable std::mutex mutex;  // held for a copy, never during a walk
  std::vector<Directory> directories;
  std::optional<DiskLimit> breach;
  bool closed = false;  // by the last walk: an earlier one that is still under way tells nothing new

  std::size_t directory_count() const {
    const std::scoped_lock lock(mutex);
    return directories.size();
  }

  std::optional<Milliseconds> walk_all() {
    if (stopped) return std::nullopt;
    const auto start = Clock::now();
    const std::size_t count = directory_count();
    for (std::size_t i = 0; i < count && !stopped; ++i) {
      const auto used = measure(i, kMostEntries);
      if (used) record(i, *used, Walk::one_of_many);
    }
    const auto spent = std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
    return std::clamp(kPausePerWalk * spent, kLeastPause, kMostPause);
  }

  /// Every directory is as it was made: then nothing but that is used, whatever a walk has seen on the way.
  bool is_untouched() {
    const std::scoped_lock lock(mutex);
    for (const Directory& directory : directories) {
      const auto& made = directory.watched.made;
      if (!made || !made->untouched_since(directory.since)) return false;
    }
    for (Directory& directory : directories) directory.used = directory.watched.made->size();
    closed = true;
    return true;
  }

  /// False: there are more than `most` entries, and nothing has been recorded of that directory.
  bool walk_last(std::size_t most) {
    const std::size_t count = directory_count();
    for (std::size_t i = 0; i < count; ++i) {
      const auto used = measure(i, most);
      if (used && used->too_many && most < kMostEntries) return false;
      if (used) record(i, *used, Walk::last);
    }
    return true;
  }

 private:
  enum class Walk { one_of_many, last };

  Result<TreeSize> measure(std::size_t index, std::size_t most) {
    std::string path;
    dev_t device = 0;
    {
      const std::scoped_lock lock(mutex);
      path = directories[index].watched.path;
      device = directories[index].device;
    }
    PRIMS_ASSIGN_OR_RETURN(TreeSize size, measure_tree(path, most));
    size.bytes.count += measure_nameless(device, processes()).count;
    return size;
  }

  void record(std::size_t index, const TreeSize& size, Walk which) {
    const std::scoped_lock lock(mutex);
    if (closed && which != Walk::last) return;
    closed = which == Walk::last;
    Directory& directory = directories[index];
    directory.used = size.bytes;
    const Bytes limit = directory.watched.limit;
    const bool over = size.too_many || size.bytes > limit;
    if (over && !breach) breach = DiskLimit{limit, size.bytes};
  }
};

DirectoryWatch::DirectoryWatch(Background& walker, Background& closer, Processes processes)
    : walker_(walker), closer_(closer), state_(std::make_shared<State>(std::move(processes))) {}

DirectoryWatch::~DirectoryWatch() {
  state_->stopped = true;
}

Result<> DirectoryWatch::watch(WatchedDirectory directory) {
  struct stat status{};
  const std::string& path = directory.path;
  if (::lstat(path.c_str(), &status) != 0) return fail_errno("stat " + path);
  if (!S_ISDIR(status.st_mode)) return fail_errno("stat " + path, ENOTDIR);
  const std::scoped_lock lock(state_->mutex);
  state_->directories.push_back({std::move(directory), status.st_dev, Clock::now(), Bytes{}});
  return {};
}

UniqueFd DirectoryWatch::close() {
  state_->stopped = true;
  if (state_->is_untouched()) return {};
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    state_->walk_last(kMostEntries);  // slower for others, but not left out
    return {};
  }
  // Closed together with the job, whether that was done or dropped.
  auto done = std::make_shared<UniqueFd>(ends[1]);
  closer_.add([state = state_, &walker = walker_, done = std::move(done)]() -> std::optional<Milliseconds> {
    if (state->walk_last(kFewEntries)) return std::nullopt;
    walker.add([state, done]() -> std::optional<Milliseconds> {
      state->walk_last(kMostEntries);
      return std::nullopt;
    });
    return std::nullopt;
  });
  return UniqueFd(ends[0]);
}

std::optional<DiskLimit> DirectoryWatch::breached() {
  const std::scoped_lock lock(state_->mutex);
  const bool wanted = !state_->directories.empty() && !state_->stopped;
  if (wanted && !std::exchange(walks_, true)) walker_.add([state = state_] { return state->walk_all(); });
  return state_->breach;
}

Bytes DirectoryWatch::used() const {
  const std::scoped_lock lock(state_->mutex);
  Bytes sum;
  for (const auto& directory : state_->directories) sum.count += directory.used.count;
  return sum;
}

}  // namespace prims::sandbox

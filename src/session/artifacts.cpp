#include "session/artifacts.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "base/text.h"
#include "base/unique_fd.h"
#include "session/confined.h"
#include "session/mime.h"

namespace prims::session {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Listing = std::unique_ptr<DIR, CloseDirectory>;

Listing list(UniqueFd fd) {
  Listing listing(::fdopendir(fd.get()));
  if (listing) static_cast<void>(fd.release());
  return listing;
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileIdentity identity(const struct stat& info) {
  return {.inode = info.st_ino,
          .size = static_cast<std::uint64_t>(info.st_size),
          .modified_ns = nanoseconds(info.st_mtim),
          .changed_ns = nanoseconds(info.st_ctim)};
}

using Visit = std::function<void(const std::string& path, const FileIdentity&)>;

// Breadth first, so that a deep tree cannot hide what lies near the top. Every directory is opened anew from
// the root through the confinement; a file is looked at by its name in an open directory, without following
// links.
class Walk {
 public:
  Walk(const ArtifactLimits& limits, const Visit& visit) : limits_(limits), visit_(visit) {}

  std::string run(const std::filesystem::path& output) {
    const auto root = Confined::open(output);
    if (!root) return {};
    queue_.push_back({".", 0});
    while (!queue_.empty()) {
      const Pending next = std::move(queue_.front());
      queue_.pop_front();
      auto fd = root->open_directory(next.path);
      if (!fd) {
        note(fmt::format("the directory '{}' cannot be read", to_utf8(next.path)));
        continue;
      }
      const Listing listing = list(std::move(*fd));
      if (listing && !visit_entries(listing.get(), next)) break;
    }
    return note_;
  }

 private:
  struct Pending {
    std::string path;
    std::size_t depth;
  };

  void note(std::string text) {
    if (note_.empty()) note_ = std::move(text);
  }

  // Whether to go on.
  bool visit_entries(DIR* listing, const Pending& at) {
    while (const dirent* entry = ::readdir(listing)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++visited_ > limits_.visited) {
        note(fmt::format("only the first {} directory entries were looked at", limits_.visited));
        return false;
      }
      struct stat info{};
      if (::fstatat(::dirfd(listing), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      const std::string path = at.path == "." ? name : at.path + '/' + name;
      if (S_ISREG(info.st_mode)) visit_(path, identity(info));
      if (S_ISDIR(info.st_mode)) descend(path, at.depth + 1);
    }
    return true;
  }

  void descend(const std::string& path, std::size_t depth) {
    if (depth > limits_.depth) {
      note(fmt::format("directories nested deeper than {} were not looked at", limits_.depth));
    } else {
      queue_.push_back({path, depth});
    }
  }

  const ArtifactLimits& limits_;
  const Visit& visit_;
  std::deque<Pending> queue_;
  std::size_t visited_ = 0;
  std::string note_;
};

Artifact describe(const std::string& path, std::uint64_t size) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return {.path = path,
          .name = to_utf8(name),
          .relative_path = to_utf8(path),
          .size = size,
          .mime = mime_type(name)};
}

// The directory of `path` below `at`, made on the way; links in between are refused.
Result<UniqueFd> make_parents(UniqueFd at, std::string_view path) {
  for (auto slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    const std::string name(path.substr(0, slash));
    path.remove_prefix(slash + 1);
    if (::mkdirat(at.get(), name.c_str(), 0777) != 0 && errno != EEXIST) return fail_errno(to_utf8(name));
    UniqueFd next(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return fail_errno(to_utf8(name));
    at = std::move(next);
  }
  return at;
}

Result<std::uint64_t> copy_content(int from, int to, std::uint64_t limit, const std::string& shown) {
  std::array<char, 1 << 16> buffer;
  std::uint64_t copied = 0;
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got == 0) return copied;
    if (got < 0) return fail_errno(fmt::format("read {}", shown));
    const auto count = static_cast<std::size_t>(got);
    if (count > limit - copied)
      return fail(Kind::exhausted, fmt::format("the files in output/ exceed the limit at {}", shown));
    for (std::size_t written = 0; written < count;) {
      const ssize_t put = ::write(to, buffer.data() + written, count - written);
      if (put < 0) return fail_errno(fmt::format("write {}", shown));
      written += static_cast<std::size_t>(put);
    }
    copied += count;
  }
}

}  // namespace

Snapshot take_snapshot(const std::filesystem::path& output, const ArtifactLimits& limits) {
  Snapshot found;
  const Visit visit = [&](const std::string& path, const FileIdentity& file) { found.emplace(path, file); };
  Walk(limits, visit).run(output);
  return found;
}

Artifacts changed_files(const std::filesystem::path& output, const Snapshot& before,
                        const ArtifactLimits& limits) {
  std::map<std::string, std::uint64_t> sizes;
  bool left_out = false;
  const Visit visit = [&](const std::string& path, const FileIdentity& file) {
    const auto known = before.find(path);
    if (known != before.end() && known->second == file) return;
    if (sizes.size() < limits.listed) {
      sizes.emplace(path, file.size);
    } else {
      left_out = true;
    }
  };
  Artifacts result;
  result.incomplete = Walk(limits, visit).run(output);
  if (left_out)
    result.incomplete =
        fmt::format("more than {} files in output/; the others are not listed", limits.listed);
  for (const auto& [path, size] : sizes) result.files.push_back(describe(path, size));
  return result;
}

Result<> copy_artifacts(const std::filesystem::path& output, const std::vector<Artifact>& files,
                        const std::filesystem::path& destination, Bytes total) {
  std::error_code code;
  std::filesystem::create_directories(destination, code);
  if (code) return fail_errno(destination.string(), code.value());
  PRIMS_ASSIGN_OR_RETURN(const Confined source, Confined::open(output));
  for (const Artifact& file : files) {
    PRIMS_ASSIGN_OR_RETURN(const UniqueFd from, source.open_file(file.path));
    UniqueFd root(::open(destination.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root) return fail_errno(destination.string());
    PRIMS_ASSIGN_OR_RETURN(const UniqueFd parent, make_parents(std::move(root), file.path));
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    const UniqueFd to(::openat(parent.get(), name.c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    if (!to) return fail_errno(fmt::format("{}/{}", destination.string(), file.relative_path));
    PRIMS_ASSIGN_OR_RETURN(const std::uint64_t copied,
                           copy_content(from.get(), to.get(), total.count, file.relative_path));
    total.count -= copied;
  }
  return {};
}

}  // namespace prims::session

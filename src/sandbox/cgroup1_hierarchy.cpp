#include "sandbox/cgroup1_hierarchy.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <ranges>

#include "base/log.h"

namespace prims::sandbox {
namespace {

constexpr std::array kControllers{Controller::memory, Controller::pids, Controller::cpu, Controller::cpuacct};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, separator)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

bool lists(std::string_view names, Controller controller) {
  return contains(split(names, ','), to_string(controller));
}

/// The path of this process in the hierarchy of `controller`, as the kernel writes it: from the hierarchy's
/// top.
std::string_view path_in(std::string_view cgroup, Controller controller) {
  for (const std::string_view line : split(cgroup, '\n')) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    if (lists(line.substr(first + 1, second - first - 1), controller)) return line.substr(second + 1);
  }
  return "/";
}

/// Only empty directories go: a cgroup that holds processes refuses.
void remove_tree(int parent, const std::string& name) {
  const int fd = ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') ::unlinkat(fd, entry->d_name, AT_REMOVEDIR);
  }
  ::unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

constexpr int kDeepest = 12;
constexpr int kMostAttempts = 20;

void sweep(int directory, int depth) {
  const int fd = ::fcntl(directory, F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
    const UniqueFd below(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!below) continue;
    if (!name.starts_with(kServerPrefix)) {
      if (depth < kDeepest) sweep(below.get(), depth + 1);
    } else if (::flock(below.get(), LOCK_EX | LOCK_NB) == 0) {
      remove_tree(fd, name);
    }
  }
}

Result<UniqueFd> make_and_lock(const std::string& path) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno("mkdir " + path);
    UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    // Until the lock is held, another server's sweep may take the directory away.
    const bool ours =
        directory && ::flock(directory.get(), LOCK_EX) == 0 && ::access(path.c_str(), F_OK) == 0;
    if (ours) return directory;
  }
  return fail(Kind::unavailable, "lock " + path);
}

}  // namespace

std::string_view to_string(Controller controller) {
  switch (controller) {
    case Controller::memory:
      return "memory";
    case Controller::pids:
      return "pids";
    case Controller::cpu:
      return "cpu";
    case Controller::cpuacct:
      return "cpuacct";
  }
  return "";
}

std::vector<Cgroup1Mount> find_cgroup1_mounts(std::string_view mountinfo, std::string_view cgroup) {
  std::vector<Cgroup1Mount> found;
  std::vector<Controller> placed;
  for (const std::string_view line : split(mountinfo, '\n')) {
    // "... ROOT MOUNTPOINT options - cgroup SOURCE CONTROLLERS,..." (man 5 proc_pid_mountinfo)
    const auto dash = line.find(" - cgroup ");
    if (dash == std::string_view::npos) continue;
    const auto head = split(line.substr(0, dash), ' ');
    const auto tail = split(line.substr(dash + 3), ' ');
    if (head.size() < 5 || tail.size() < 3) continue;
    std::vector<Controller> carried;
    for (const Controller controller : kControllers) {
      if (lists(tail[2], controller) && !contains(placed, controller)) carried.push_back(controller);
    }
    if (carried.empty()) continue;
    placed.insert(placed.end(), carried.begin(), carried.end());
    const std::string mount_point(head[4]);
    const std::string_view root = head[3];
    std::string_view own = path_in(cgroup, carried.front());
    // In a container the mount shows only the part of the hierarchy below `root`.
    if (root != "/" && own.starts_with(root)) own.remove_prefix(root.size());
    const bool below = own.size() > 1 && !own.starts_with("/..");
    found.push_back({std::move(carried), mount_point, below ? mount_point + std::string(own) : mount_point});
  }
  return found;
}

Result<ServerCgroup> ServerCgroup::create(const Cgroup1Mount& mount, const std::string& name) {
  std::optional<Error> first_error;
  for (const std::string& parent : {mount.own_path, mount.mount_point}) {
    const std::string path = fmt::format("{}/{}", parent, name);
    auto directory = make_and_lock(path);
    if (directory) return ServerCgroup(mount.controllers, path, *std::move(directory));
    if (!first_error) first_error = directory.error();
  }
  return std::unexpected(*std::move(first_error));
}

void sweep_dead_servers(const Cgroup1Mount& mount) {
  const UniqueFd top(::open(mount.mount_point.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (top) sweep(top.get(), 0);
}

ServerCgroup::~ServerCgroup() {
  if (directory_ && !remove()) log::debug("cgroup {} stays for the next start", path_);
}

bool ServerCgroup::carries(Controller controller) const {
  return contains(controllers_, controller);
}

bool ServerCgroup::remove() {
  remove_tree(AT_FDCWD, path_);
  return ::access(path_.c_str(), F_OK) != 0;
}

Result<std::string> read_control(int directory, const std::string& name) {
  const UniqueFd file(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("open " + name);
  std::string text;
  std::array<char, 4096> part;
  ssize_t count = 0;
  while ((count = ::read(file.get(), part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  if (count < 0) return fail_errno("read " + name);
  return text;
}

Result<> write_control(int directory, const std::string& name, std::string_view value) {
  const UniqueFd file(::openat(directory, name.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return fail_errno("open " + name);
  if (::write(file.get(), value.data(), value.size()) < 0) return fail_errno("write " + name);
  return {};
}

}  // namespace prims::sandbox

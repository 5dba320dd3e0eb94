#include "sandbox/tree_plan.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <string_view>

namespace prims::sandbox {
namespace {

constexpr mode_t kPassOnly = 0111;
constexpr std::array kDevices = {"null", "zero", "full", "random", "urandom"};

Result<> check_path(std::string_view path) {
  const bool absolute = path.size() > 1 && path.front() == '/' && path.back() != '/';
  const std::string padded = fmt::format("{}/", path);
  const bool plain = padded.find("//") == std::string::npos && padded.find("/./") == std::string::npos &&
                     padded.find("/../") == std::string::npos && path.find('\0') == std::string_view::npos;
  if (absolute && plain) return {};
  return fail(Kind::invalid_input, fmt::format("'{}' is not an absolute, plain path", path));
}

class Planner {
 public:
  Result<> add(const std::string& path, Node node) {
    PRIMS_RETURN_ON_ERROR(check_path(path));
    const bool known = plan_.contains(path);
    if (known && std::holds_alternative<DirectoryNode>(node)) return {};  // a mount point named as such
    if (!known) {
      plan_.emplace(path, std::move(node));
      return {};
    }
    return fail(Kind::invalid_input, fmt::format("'{}' is described twice", path));
  }

  Result<> add_bind(const BindMount& bind) {
    PRIMS_RETURN_ON_ERROR(check_path(bind.source));
    struct stat status{};
    if (::stat(bind.source.c_str(), &status) != 0) return fail_errno(bind.source);
    BindNode node{.source = bind.source, .access = bind.access, .directory = S_ISDIR(status.st_mode)};
    return add(bind.target, std::move(node));
  }

  /// Parents below a bind exist there or not at all; others are made.
  void add_parents() {
    TreePlan missing;
    for (const auto& [path, node] : plan_) {
      for (std::size_t end = path.rfind('/'); end > 0 && end != std::string::npos;
           end = path.rfind('/', end - 1)) {
        std::string parent = path.substr(0, end);
        if (!plan_.contains(parent)) missing.try_emplace(std::move(parent), DirectoryNode{.mode = kPassOnly});
      }
    }
    plan_.merge(missing);
  }

  TreePlan take() { return std::move(plan_); }

 private:
  TreePlan plan_;
};

Result<> add_base(Planner& planner) {
  PRIMS_RETURN_ON_ERROR(planner.add("/proc", DirectoryNode{}));
  PRIMS_RETURN_ON_ERROR(planner.add("/dev", DirectoryNode{}));
  PRIMS_RETURN_ON_ERROR(planner.add("/dev/pts", DirectoryNode{}));
  for (const char* name : kDevices) {
    const std::string path = fmt::format("/dev/{}", name);
    BindNode node{.source = path, .access = Access::read_write, .device = true, .directory = false};
    PRIMS_RETURN_ON_ERROR(planner.add(path, std::move(node)));
  }
  PRIMS_RETURN_ON_ERROR(planner.add("/dev/ptmx", SymlinkNode{"pts/ptmx"}));
  PRIMS_RETURN_ON_ERROR(planner.add("/dev/fd", SymlinkNode{"/proc/self/fd"}));
  PRIMS_RETURN_ON_ERROR(planner.add("/dev/stdin", SymlinkNode{"/proc/self/fd/0"}));
  PRIMS_RETURN_ON_ERROR(planner.add("/dev/stdout", SymlinkNode{"/proc/self/fd/1"}));
  return planner.add("/dev/stderr", SymlinkNode{"/proc/self/fd/2"});
}

}  // namespace

Result<TreePlan> plan_tree(const Root& root) {
  Planner planner;
  for (const TmpfsMount& mount : root.tmpfs) {
    if (mount.size.count == 0 || mount.inodes == 0) {
      return fail(Kind::invalid_input, fmt::format("tmpfs {} has no bound", mount.path));
    }
    PRIMS_RETURN_ON_ERROR(planner.add(mount.path, TmpfsNode{mount}));
  }
  for (const BindMount& bind : root.binds) PRIMS_RETURN_ON_ERROR(planner.add_bind(bind));
  for (const FileEntry& file : root.files) {
    PRIMS_RETURN_ON_ERROR(planner.add(file.path, FileNode{file.content, file.mode}));
  }
  for (const SymlinkEntry& link : root.symlinks)
    PRIMS_RETURN_ON_ERROR(planner.add(link.path, SymlinkNode{link.target}));
  PRIMS_RETURN_ON_ERROR(add_base(planner));
  for (const std::string& path : root.directories) PRIMS_RETURN_ON_ERROR(planner.add(path, DirectoryNode{}));
  planner.add_parents();
  return planner.take();
}

}  // namespace prims::sandbox

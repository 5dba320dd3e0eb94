#include "launcher/trees.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

namespace prims::launcher {
namespace {

Failure open_copy(const char* source, std::uint32_t flags, int& fd) {
  unsigned how = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
  if ((flags & wire::kTreeRecursive) != 0) how |= AT_RECURSIVE;
  fd = open_tree(AT_FDCWD, source, how);
  return check("open_tree", fd);
}

Failure restrict_tree(int fd, std::uint32_t flags) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID;
  attributes.attr_set |= (flags & wire::kTreeDevice) != 0 ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV;
  if ((flags & wire::kTreeReadOnly) != 0) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  attributes.propagation = MS_PRIVATE;
  const unsigned how = AT_EMPTY_PATH | ((flags & wire::kTreeRecursive) != 0 ? AT_RECURSIVE : 0U);
  return check("mount_setattr", mount_setattr(fd, "", how, &attributes, sizeof attributes));
}

Failure map_owner(int fd, int owner_namespace) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<std::uint64_t>(owner_namespace);
  return check("id-mapped mount", mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes));
}

}  // namespace

Failure take_tree(const wire::Tree& tree, int& fd) {
  const Failure opened = open_copy(tree.source.data(), tree.flags, fd);
  if (opened && opened.error == ENOENT && (tree.flags & wire::kTreeOptional) != 0) return {};
  LAUNCHER_TRY(opened);
  return restrict_tree(fd, tree.flags);
}

Failure take_attachment(const wire::Attach& attach, int owner_namespace, int& fd) {
  LAUNCHER_TRY(open_copy(attach.source.data(), attach.flags, fd));
  LAUNCHER_TRY(restrict_tree(fd, attach.flags));
  if (owner_namespace < 0) return {};
  const Failure mapped = map_owner(fd, owner_namespace);
  return (attach.flags & wire::kTreeReadOnly) != 0 ? Failure{} : mapped;
}

Failure put_tree(const char* step, int fd, const char* target) {
  return check(step, move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH));
}

}  // namespace prims::launcher

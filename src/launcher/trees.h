// Host directories and files as detached mounts: taken outside the sandbox, restricted, put in place inside.
#pragma once

#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

/// Detaches a copy of `source`, nosuid and, but for devices, nodev; read-only where asked. `fd` is -1 for an
/// optional source that is not there.
Failure take_tree(const wire::Tree& tree, int& fd);

/// The same for an attachment. With `owner_namespace` (-1: none) files of the owner appear as files of the
/// sandbox's user; a read-only attachment does without where the file system cannot do that.
Failure take_attachment(const wire::Attach& attach, int owner_namespace, int& fd);

/// Mounts a detached tree on `target`, which is not followed when it is a symlink.
Failure put_tree(const char* step, int fd, const char* target);

}  // namespace prims::launcher

// The file tree of a Root as one list of nodes in the order in which they can be made: parents first.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "base/result.h"
#include "sandbox/spec.h"

namespace prims::sandbox {

struct DirectoryNode {
  mode_t mode = 0755;
};
struct FileNode {
  std::string content;
  mode_t mode = 0444;
};
struct SymlinkNode {
  std::string target;
};
struct TmpfsNode {
  TmpfsMount mount;
};
struct BindNode {
  std::string source;
  Access access = Access::read_only;
  bool device = false;
  bool directory = true;
};
using Node = std::variant<DirectoryNode, FileNode, SymlinkNode, TmpfsNode, BindNode>;

/// By path; a path sorts behind its parents.
using TreePlan = std::map<std::string, Node>;

/// Adds what every sandbox has (/proc, /dev) and the parents that the Root does not name. Those can be passed
/// through but not listed, so that a bind below a private directory does not show its neighbours' names.
/// Refuses paths that are not absolute and plain ("..", empty parts) and paths with two meanings.
Result<TreePlan> plan_tree(const Root& root);

}  // namespace prims::sandbox

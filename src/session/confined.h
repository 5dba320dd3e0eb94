// The one door to files that a guest may have made.
//
// A workspace is hostile: names, links, pipes and nesting are whatever the guest chose. Every access of the
// host goes through this class, which never leaves the directory, never follows a link, never crosses a mount
// and never blocks.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::session {

class Confined {
 public:
  /// `root` is a directory of ours; only its last component is checked for being a link.
  static Result<Confined> open(const std::filesystem::path& root);

  /// A regular file for reading. Anything else (directory, pipe, socket, device, link) is invalid_input or
  /// denied.
  Result<UniqueFd> open_file(std::string_view relative) const;

  /// A directory for listing. "." is the root itself.
  Result<UniqueFd> open_directory(std::string_view relative) const;

 private:
  explicit Confined(UniqueFd root) : root_(std::move(root)) {}
  Result<UniqueFd> open_beneath(std::string_view relative, int flags) const;

  UniqueFd root_;
};

}  // namespace prims::session

// Whether anything has happened in directories that were made empty: a few calls where a walk would be many.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/result.h"

namespace prims {

/// Directories with nothing in them but each other. Whatever is put into one, or taken out, changes its time
/// of last status change (inode(7), ctime), which nobody can set.
class EmptyTree {
 public:
  /// All of `directories`, made a moment ago.
  static Result<EmptyTree> of(std::vector<std::string> directories);

  /// Nothing has happened since. `first` is when others could begin to write: where that is so soon after the
  /// making that both may carry the same time stamp, the answer is false.
  bool untouched_since(Clock::time_point first) const;

  /// On the disk.
  Bytes size() const { return size_; }

 private:
  struct Directory {
    std::string path;
    ino_t inode = 0;
    timespec changed{};
  };

  std::vector<Directory> directories_;
  Bytes size_;
  Clock::time_point made_;
};

}  // namespace prims

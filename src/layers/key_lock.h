// One lock per key between processes, all in one file: a key is one byte of a huge, empty range (man 2 fcntl,
// open file description locks). Nothing needs cleaning up, and the kernel frees a lock when its holder dies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "io/task.h"

namespace prims::layers {

/// Given back when the object goes. Different keys share a byte with a chance of 2^-62, which only makes one
/// wait.
class KeyLock {
 public:
  /// Nothing when another holder, also of this process, has it.
  static Result<std::optional<KeyLock>> try_take(const std::filesystem::path& file, std::string_view key);

  /// Waits for it.
  static io::Task<Result<KeyLock>> take(std::filesystem::path file, std::string key, Deadline deadline);

 private:
  explicit KeyLock(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
};

}  // namespace prims::layers

// Small files of the kernel: written in one go.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "launcher/failure.h"

namespace prims::launcher {

/// Writes `content` with one write() to a file that exists.
inline Failure write_file(const char* step, const char* path, std::string_view content) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  LAUNCHER_TRY(check(step, file));
  const Failure failure = check(step, write(file, content.data(), content.size()));
  close(file);
  return failure;
}

}  // namespace prims::launcher

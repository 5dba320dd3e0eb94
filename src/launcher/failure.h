// Errors inside the launcher: the name of the step that failed and its errno. No exceptions, no strings.
#pragma once

#include <cerrno>

namespace prims::launcher {

struct [[nodiscard]] Failure {
  const char* step = nullptr;  ///< a literal; null: no failure
  int error = 0;

  explicit operator bool() const { return step != nullptr; }
};

/// A system call's result as a Failure.
inline Failure check(const char* step, long result) {
  return result < 0 ? Failure{step, errno} : Failure{};
}

}  // namespace prims::launcher

#define LAUNCHER_TRY(expr) \
  if (const ::prims::launcher::Failure failed_here = (expr)) return failed_here

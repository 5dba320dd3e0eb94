// Reads uv's words on a failure and says what a caller can do about it.
#pragma once

#include <string>
#include <string_view>

#include "layers/store.h"

namespace prims::layers {

enum class Cause {
  missing,       ///< no package of that name
  needs_python,  ///< only for other versions of Python
  needs_build,   ///< has no wheel for this platform, so it would have to be built from source
  conflict,      ///< the wishes exclude each other, or no such version
  build_failed,  ///< building from source failed
  unreachable,   ///< the index does not answer
  refused,       ///< the index asks for credentials, or ours are wrong
  invalid,       ///< a requirement that uv cannot read
  other,
};

struct Diagnosis {
  Cause cause = Cause::other;
  DependencyError error;
};

/// `output` is uv's standard error.
Diagnosis diagnose(std::string_view output, const Interpreter& interpreter);

}  // namespace prims::layers

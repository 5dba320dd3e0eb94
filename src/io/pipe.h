// A pipe, closed on exec.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::io {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe();

}  // namespace prims::io

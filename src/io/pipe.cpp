#include "io/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace prims::io {

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace prims::io

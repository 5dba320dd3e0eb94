#include "base/result.h"

#include <cstring>
#include <system_error>

namespace prims {

std::string errno_text(int code) {
  return std::generic_category().message(code);
}

std::unexpected<Error> fail_errno(std::string_view what, int code) {
  Kind kind = Kind::unavailable;
  switch (code) {
    case ENOENT:
      kind = Kind::not_found;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      kind = Kind::denied;
      break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
      kind = Kind::exhausted;
      break;
    case EINVAL:
      kind = Kind::invalid_input;
      break;
    default:
      break;
  }
  return fail(kind, std::string(what) + ": " + errno_text(code));
}

}  // namespace prims

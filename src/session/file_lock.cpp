#include "session/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <utility>

namespace prims::session {
namespace {

Result<UniqueFd> open_lock(const std::filesystem::path& file) {
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(fmt::format("open {}", file.string()));
  return fd;
}

}  // namespace

Result<UniqueFd> lock_file(const std::filesystem::path& file) {
  PRIMS_ASSIGN_OR_RETURN(UniqueFd fd, open_lock(file));
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail_errno(fmt::format("lock {}", file.string()));
  }
  return fd;
}

Result<std::optional<UniqueFd>> try_lock_file(const std::filesystem::path& file) {
  PRIMS_ASSIGN_OR_RETURN(UniqueFd fd, open_lock(file));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return std::optional<UniqueFd>(std::move(fd));
  if (errno == EWOULDBLOCK) return std::nullopt;
  return fail_errno(fmt::format("lock {}", file.string()));
}

}  // namespace prims::session

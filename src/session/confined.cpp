#include "session/confined.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <string>
#include <utility>

#include "base/text.h"

namespace prims::session {
namespace {

// The kernel answers EAGAIN when a rename elsewhere makes ".." ambiguous (man 2 openat2).
constexpr int kAttempts = 16;

std::unexpected<Error> explain(std::string_view relative, int code) {
  const std::string shown = to_utf8(relative);
  switch (code) {
    case EXDEV:
      return fail(Kind::denied, fmt::format("'{}' leads out of the workspace", shown));
    case ELOOP:
      return fail(Kind::denied, fmt::format("'{}' is or passes through a symbolic link", shown));
    case ENXIO:
      return fail(Kind::invalid_input, fmt::format("'{}' is not a regular file", shown));
    case ENOTDIR:
      return fail(Kind::invalid_input,
                  fmt::format("'{}' is not a directory or passes through a file", shown));
    case ENAMETOOLONG:
      return fail(Kind::invalid_input, "the path is too long");
    case ENOSYS:
      return fail(Kind::unavailable, "this kernel lacks openat2 (Linux 5.6 or newer is needed)");
    default:
      return fail_errno(shown, code);
  }
}

}  // namespace

Result<Confined> Confined::open(const std::filesystem::path& root) {
  UniqueFd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(root.string());
  return Confined(std::move(fd));
}

Result<UniqueFd> Confined::open_beneath(std::string_view relative, int flags) const {
  if (relative.empty()) return fail(Kind::invalid_input, "the path is empty");
  if (relative.find('\0') != std::string_view::npos)
    return fail(Kind::invalid_input, "the path contains a NUL byte");
  const std::string path(relative);
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  int code = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof how)));
    if (fd) return fd;
    code = errno;
    if (code != EAGAIN && code != EINTR) break;
  }
  return explain(relative, code);
}

Result<UniqueFd> Confined::open_file(std::string_view relative) const {
  PRIMS_ASSIGN_OR_RETURN(UniqueFd fd, open_beneath(relative, 0));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(to_utf8(relative));
  if (!S_ISREG(info.st_mode)) {
    return fail(Kind::invalid_input, fmt::format("'{}' is not a regular file", to_utf8(relative)));
  }
  return fd;
}

Result<UniqueFd> Confined::open_directory(std::string_view relative) const {
  return open_beneath(relative, O_DIRECTORY);
}

}  // namespace prims::session

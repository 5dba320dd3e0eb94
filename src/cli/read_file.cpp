#include "cli/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/unique_fd.h"

namespace prims::cli {
namespace {

Result<std::string> read_all(int fd, const std::string& name, Bytes limit) {
  std::string content;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return content;
    if (got < 0) {
      if (errno == EINTR) continue;
      return fail_errno(name);
    }
    content.append(buffer.data(), static_cast<std::size_t>(got));
    if (content.size() > limit.count)
      return fail(Kind::exhausted, fmt::format("{} is larger than {}", name, to_string(limit)));
  }
}

}  // namespace

Result<std::string> read_file(const std::string& name, Bytes limit) {
  if (name == "-") return read_all(STDIN_FILENO, "standard input", limit);
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(name);
  return read_all(fd.get(), name, limit);
}

}  // namespace prims::cli

#include "cli/read_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/unique_fd.h"
#include "cli/terminal.h"

namespace prims::cli {
namespace {

constexpr int kPatienceMilliseconds = 2000;

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

bool is_ready(int fd, int milliseconds) {
  pollfd input{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, milliseconds) != 0;
}

}  // namespace

Result<std::string> read_file(const std::string& name, Bytes limit) {
  if (name == "-") return read_all(STDIN_FILENO, "standard input", limit);
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(name);
  return read_all(fd.get(), name, limit);
}

Result<std::optional<std::string>> read_program_input(Bytes limit) {
  if (::fcntl(STDIN_FILENO, F_GETFD) < 0 || ::isatty(STDIN_FILENO) == 1) return std::nullopt;
  if (!is_ready(STDIN_FILENO, kPatienceMilliseconds)) {
    complain("waiting for the end of standard input (give </dev/null when the program needs none)");
  }
  PRIMS_ASSIGN_OR_RETURN(std::string content, read_all(STDIN_FILENO, "standard input", limit));
  return std::optional<std::string>(std::move(content));
}

}  // namespace prims::cli

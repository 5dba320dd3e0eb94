#include "cli/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

namespace prims::cli {
namespace {

constexpr std::chrono::seconds kQuiet{5};
constexpr std::string_view kEraseLine = "\r\x1b[K";

void say(std::string_view text) {
  static_cast<void>(write_all(STDERR_FILENO, text));
}

bool is_usable_terminal(int fd) {
  const char* kind = ::getenv("TERM");
  return ::isatty(fd) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::string one_line(std::string_view sentence) {
  std::string text = tame(STDERR_FILENO, std::string(sentence));
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

Result<> write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // The descriptor is shared with whoever started us and may be non-blocking.
      pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
    } else if (errno == EPIPE) {
      return fail(Kind::cancelled, "nobody reads the output");
    } else if (errno != EINTR) {
      return fail_errno("write");
    }
  }
  return {};
}

void print(std::string_view data) {
  const auto written = write_all(STDOUT_FILENO, data);
  if (!written && written.error().kind != Kind::cancelled) complain(written.error().message);
}

void complain(std::string_view message) {
  say(fmt::format("prims: {}\n", message));
}

std::string tame(int fd, std::string text) {
  if (::isatty(fd) != 1) return text;
  std::ranges::replace_if(
      text, [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F; }, ' ');
  return text;
}

bool wants_colour(int fd) {
  const char* refused = ::getenv("NO_COLOR");
  return is_usable_terminal(fd) && (refused == nullptr || *refused == '\0');
}

ProgressLine::ProgressLine() : terminal_(is_usable_terminal(STDERR_FILENO)) {}

void ProgressLine::show(std::string_view sentence) {
  if (terminal_) {
    say(fmt::format("{}{}", kEraseLine, one_line(sentence)));
    visible_ = true;
    return;
  }
  const auto now = Clock::now();
  if (last_ != Clock::time_point::min() && now - last_ < kQuiet) return;
  last_ = now;
  complain(one_line(sentence));
}

void ProgressLine::clear() {
  if (visible_) say(kEraseLine);
  visible_ = false;
}

}  // namespace prims::cli

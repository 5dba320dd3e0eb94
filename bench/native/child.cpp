#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "text.h"

namespace bench {

Child::Child(const std::vector<std::string>& line) {
  int to_child[2];
  int from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) give_up_with_errno("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : line) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int error = ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    give_up_with_errno(line[0]);
  }
  ::close(to_child[0]);
  ::close(from_child[1]);
  input_ = to_child[1];
  output_ = from_child[0];
}

Child::~Child() {
  close_input();
  ::close(output_);
  if (pid_ > 0) wait();
}

void Child::write(const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t written = ::write(input_, text.data() + sent, text.size() - sent);
    if (written < 0) give_up_with_errno("write to the program");
    sent += static_cast<std::size_t>(written);
  }
}

bool Child::fill() {
  char bytes[65536];
  const ssize_t got = ::read(output_, bytes, sizeof bytes);
  if (got > 0) buffer_.append(bytes, static_cast<std::size_t>(got));
  return got > 0;
}

std::string Child::read_line() {
  std::size_t end = buffer_.find('\n');
  while (end == std::string::npos) {
    const std::size_t searched = buffer_.size();
    if (!fill()) give_up("the program closed its output: " + buffer_);
    end = buffer_.find('\n', searched);
  }
  std::string line = buffer_.substr(0, end + 1);
  buffer_.erase(0, end + 1);
  return line;
}

std::optional<std::string> Child::read_line_until(Nanoseconds end) {
  while (buffer_.find('\n') == std::string::npos) {
    const Nanoseconds left = std::max<Nanoseconds>(0, end - now());
    const timespec patience{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    pollfd output{.fd = output_, .events = POLLIN, .revents = 0};
    if (::ppoll(&output, 1, &patience, nullptr) <= 0) return std::nullopt;
    if (!fill()) give_up("the program closed its output: " + buffer_);
  }
  return read_line();
}

std::string Child::read_all() {
  while (fill()) {
  }
  return std::move(buffer_);
}

void Child::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

int Child::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

}  // namespace bench

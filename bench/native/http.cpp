#include "http.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "text.h"

namespace bench {

std::string header_value(std::string_view head, std::string_view name) {
  std::string lower(head);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto at = lower.find("\r\n" + std::string(name) + ":");
  if (at == std::string::npos) return "";
  const auto begin = lower.find_first_not_of(' ', at + 2 + name.size() + 1);
  return lower.substr(begin, lower.find("\r\n", begin) - begin);
}

bool Answer::read_head() {
  const auto end = bytes_.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::string_view head = std::string_view(bytes_).substr(0, end + 2);
  body_ = end + 4;
  chunked_ = header_value(head, "transfer-encoding") == "chunked";
  const std::string length = header_value(head, "content-length");
  if (!chunked_ && length.empty()) give_up("an answer without Content-Length: " + bytes_);
  cursor_ = body_ + (chunked_ ? 0 : std::strtoull(length.c_str(), nullptr, 10));
  return true;
}

bool Answer::skip_chunks() {
  for (;;) {
    const auto line = bytes_.find("\r\n", cursor_);
    if (line == std::string::npos) return false;
    const auto size = std::strtoull(bytes_.c_str() + cursor_, nullptr, 16);
    const std::size_t next = line + 2 + size + 2;
    if (bytes_.size() < next) return false;
    cursor_ = next;
    if (size == 0) return true;
  }
}

bool Answer::complete() {
  if (body_ == 0 && !read_head()) return false;
  return chunked_ ? skip_chunks() : bytes_.size() >= cursor_;
}

void Answer::clear() {
  bytes_.clear();
  body_ = cursor_ = 0;
  chunked_ = false;
}

int connect_to(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    give_up_with_errno("connect to port " + std::to_string(port));
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

}  // namespace bench

// A scripted peer for tests of the client: accepts on loopback, answers each request head with the next
// canned answer.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace prims::http {

class TestPeer {
 public:
  enum class After { keep, close };
  struct Answer {
    std::string bytes;
    After after = After::keep;
  };

  explicit TestPeer(std::vector<Answer> answers) : answers_(std::move(answers)) {
    listening_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), length);
    ::listen(listening_.get(), 16);
    ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { serve(); });
  }
  ~TestPeer() { ::shutdown(listening_.get(), SHUT_RDWR); }

  std::uint16_t port() const { return port_; }
  std::string url(std::string_view path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
  }
  int accepted() const { return accepted_; }
  std::vector<std::string> heads() {
    const std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  void serve() {
    std::size_t next = 0;
    while (next < answers_.size()) {
      const UniqueFd peer(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) return;
      ++accepted_;
      while (next < answers_.size() && read_head(peer.get())) {
        const Answer& answer = answers_[next++];
        (void)::send(peer.get(), answer.bytes.data(), answer.bytes.size(), MSG_NOSIGNAL);
        if (answer.after == After::close) break;
      }
      if (next == answers_.size() && answers_.back().after == After::keep) read_head(peer.get());
    }
  }

  bool read_head(int fd) {
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
      char c;
      if (::recv(fd, &c, 1, 0) != 1) return false;
      head.push_back(c);
    }
    const std::lock_guard lock(mutex_);
    heads_.push_back(std::move(head));
    return true;
  }

  std::vector<Answer> answers_;
  UniqueFd listening_;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::mutex mutex_;
  std::vector<std::string> heads_;
  std::jthread thread_;
};

}  // namespace prims::http

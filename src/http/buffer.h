// Received bytes that have not been used yet.
#pragma once

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace prims::http {

class Buffer {
 public:
  explicit Buffer(std::size_t limit) : limit_(limit) {}

  std::string_view view() const { return {bytes_.data() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  bool full() const { return end_ - begin_ >= limit_; }

  /// Room for more bytes, growing up to the limit; empty when full.
  std::span<char> room() {
    if (begin_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == bytes_.size())
      bytes_.resize(std::min(limit_, std::max<std::size_t>(kFirstSize, 2 * bytes_.size())));
    return {bytes_.data() + end_, bytes_.size() - end_};
  }
  void filled(std::size_t count) { end_ += count; }
  void used(std::size_t count) {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }

 private:
  static constexpr std::size_t kFirstSize = 4096;

  std::size_t limit_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::vector<char> bytes_;
};

}  // namespace prims::http

#include "python/capture.h"

#include <algorithm>
#include <utility>

namespace prims::python {

Capture::Capture(Bytes shown)
    : head_size_(static_cast<std::size_t>(shown.count / 2)),
      tail_size_(static_cast<std::size_t>(shown.count - shown.count / 2)) {}

void Capture::add(std::string_view bytes) {
  total_ += bytes.size();
  const std::size_t first = std::min(bytes.size(), head_size_ - head_.size());
  head_.append(bytes.substr(0, first));
  bytes.remove_prefix(first);
  if (bytes.size() > tail_size_) bytes.remove_prefix(bytes.size() - tail_size_);
  tail_.append(bytes);
  if (tail_.size() > 2 * tail_size_) tail_.erase(0, tail_.size() - tail_size_);
}

Captured Capture::take() && {
  if (total_ <= head_size_ + tail_size_) {
    head_.append(tail_);
    return Captured{.head = std::move(head_), .tail = {}, .total_bytes = total_};
  }
  if (tail_.size() > tail_size_) tail_.erase(0, tail_.size() - tail_size_);
  return Captured{.head = std::move(head_), .tail = std::move(tail_), .total_bytes = total_};
}

}  // namespace prims::python

// What is kept of one output stream: its beginning and its end, and how long it was. Memory stays bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "python/runner.h"

namespace prims::python {

class Capture {
 public:
  /// Of a stream longer than `shown`, half is kept from each side.
  explicit Capture(Bytes shown);

  void add(std::string_view bytes);

  std::uint64_t total() const { return total_; }

  Captured take() &&;

 private:
  std::size_t head_size_;
  std::size_t tail_size_;
  std::string head_;
  std::string tail_;  ///< at most twice tail_size_, so that bytes are moved rarely
  std::uint64_t total_ = 0;
};

}  // namespace prims::python

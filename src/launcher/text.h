// A bounded C string that is put together piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace prims::launcher {

template <std::size_t kSize>
class BasicText {
 public:
  BasicText& add(std::string_view piece) {
    for (const char c : piece) {
      if (size_ + 1 < sizeof data_) data_[size_++] = c;
    }
    data_[size_] = '\0';
    return *this;
  }

  BasicText& add(std::uint64_t number, unsigned base = 10) {
    char digits[24];
    std::size_t at = sizeof digits;
    do {
      digits[--at] = static_cast<char>('0' + number % base);
      number /= base;
    } while (number != 0);
    return add(std::string_view(digits + at, sizeof digits - at));
  }

  const char* c_str() const { return data_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  char data_[kSize] = {};
  std::size_t size_ = 0;
};

using Text = BasicText<256>;

}  // namespace prims::launcher

// The writing half of wire.h, for the server and for tests.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "launcher/wire.h"

namespace prims::launcher::wire {

class Writer {
 public:
  template <class T>
  Writer& value(const T& item) {
    static_assert(std::is_trivially_copyable_v<T>);
    data_.append(reinterpret_cast<const char*>(&item), sizeof item);
    return *this;
  }

  Writer& bytes(std::string_view content) {
    value(static_cast<std::uint32_t>(content.size()));
    data_.append(content);
    return *this;
  }

  /// As a C string. A NUL inside makes the reader refuse the whole message.
  Writer& text(std::string_view content) {
    value(static_cast<std::uint32_t>(content.size() + 1));
    data_.append(content).push_back('\0');
    return *this;
  }

  std::size_t size() const { return data_.size(); }
  std::string take() { return std::move(data_); }

 private:
  std::string data_;
};

}  // namespace prims::launcher::wire

#include "base/random.h"

#include <sys/random.h>

#include <stdexcept>
#include <vector>

namespace prims {

std::string random_token(std::size_t bytes) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::vector<unsigned char> raw(bytes);
  for (std::size_t filled = 0; filled < bytes;) {
    const ssize_t got = ::getrandom(raw.data() + filled, bytes - filled, 0);
    if (got < 0 && errno != EINTR) throw std::runtime_error("getrandom failed");
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  std::string out;
  unsigned bits = 0;
  unsigned held = 0;
  for (const unsigned char byte : raw) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 6) {
      bits -= 6;
      out.push_back(kAlphabet[(held >> bits) & 63]);
    }
  }
  if (bits > 0) out.push_back(kAlphabet[(held << (6 - bits)) & 63]);
  return out;
}

}  // namespace prims

// Server-sent events in pieces: the same events however the bytes are cut.
#include "http/sse.h"

#include <algorithm>
#include <string>

#include "fuzz.h"

namespace {

std::string read_all(std::string_view bytes, std::size_t piece) {
  prims::http::SseParser parser(prims::kib(64));
  std::string seen;
  while (!bytes.empty()) {
    const std::size_t taken = std::min(piece, bytes.size());
    if (!parser.feed(bytes.substr(0, taken))) return "?";
    bytes.remove_prefix(taken);
    while (const auto event = parser.next()) {
      seen += event->event + "|" + event->data + "|" + event->id.value_or("-") + "\n";
    }
  }
  return seen;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = prims::fuzz::text_of(data + 1, size - 1);
  const std::string whole = read_all(bytes, std::max<std::size_t>(bytes.size(), 1));
  prims::fuzz::require(whole == read_all(bytes, std::size_t{data[0]} + 1));
  return 0;
}

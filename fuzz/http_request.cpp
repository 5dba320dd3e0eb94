// HTTP requests in pieces: however the bytes are cut, the verdict is the same. The first byte chooses the
// cut.
#include "http/parser.h"

#include <algorithm>
#include <string>

#include "fuzz.h"

namespace {

using prims::http::RequestParser;

/// "?" for a refusal, "..." for an unfinished message, else what was read.
std::string verdict(std::string_view bytes, std::size_t piece) {
  RequestParser parser(prims::kib(8), prims::kib(64));
  std::string waiting;
  while (!parser.done() && !bytes.empty()) {
    const std::size_t taken = std::min(piece, bytes.size());
    waiting += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    const auto used = parser.feed(waiting);
    if (!used) return "?";
    prims::fuzz::require(*used <= waiting.size());
    waiting.erase(0, *used);
  }
  if (!parser.done()) return "...";
  const auto request = parser.take();
  return request.method + " " + request.target + "\n" + request.body;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = prims::fuzz::text_of(data + 1, size - 1);
  const std::string whole = verdict(bytes, std::max<std::size_t>(bytes.size(), 1));
  const std::string cut = verdict(bytes, std::size_t{data[0]} + 1);
  // An unfinished message may turn out to be refused only when more of it is seen at once, never the other
  // way round.
  prims::fuzz::require(whole == cut || whole == "?" || cut == "?" || cut == "...");
  return 0;
}

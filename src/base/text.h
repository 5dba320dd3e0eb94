// Text that came from outside: making it valid UTF-8, cutting it, naming near misses.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace prims {

/// Valid UTF-8: each maximal ill-formed part becomes U+FFFD, as the Unicode standard (3.9, "best practice")
/// and CPython's errors="replace" do. Well-formed input is returned unchanged.
std::string to_utf8(std::string_view raw);

/// Whether `text` is well-formed UTF-8.
bool is_utf8(std::string_view text);

/// How many bytes at the end of `raw` begin a code point that is not complete yet (0 to 3).
std::size_t unfinished_tail(std::string_view raw);

/// to_utf8 for a stream that arrives in pieces: a code point that a piece ends in waits for the next piece.
class Utf8Decoder {
 public:
  std::string feed(std::string_view raw) {
    held_.append(raw);
    const std::size_t ready = held_.size() - unfinished_tail(held_);
    std::string out = to_utf8(std::string_view(held_).substr(0, ready));
    held_.erase(0, ready);
    return out;
  }

 private:
  std::string held_;
};

/// The candidate nearest to `word` by edit distance, when near enough to be a slip (at most a third of its
/// length).
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// The last `count` lines of `text`.
std::string last_lines(std::string_view text, std::size_t count);

}  // namespace prims

// Text that came from outside: making it valid UTF-8, cutting it, naming near misses.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace prims {

/// Valid UTF-8: each maximal ill-formed part becomes U+FFFD, as the Unicode standard (3.9, "best practice") and CPython's
/// errors="replace" do. Well-formed input is returned unchanged.
std::string to_utf8(std::string_view raw);

/// Whether `text` is well-formed UTF-8.
bool is_utf8(std::string_view text);

/// The candidate nearest to `word` by edit distance, when near enough to be a slip (at most a third of its length).
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// The last `count` lines of `text`.
std::string last_lines(std::string_view text, std::size_t count);

}  // namespace prims

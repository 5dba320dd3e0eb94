#include "base/text.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace prims {
namespace {

struct Sequence {
  std::size_t length;  // bytes consumed
  bool valid;
};

// One code point, or one maximal ill-formed part, at the start of `s` (table 3-7 of the Unicode standard).
Sequence next_sequence(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true};
  std::size_t need = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    need = 1;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    need = 2;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    need = 3;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, false};
  }
  for (std::size_t i = 1; i <= need; ++i) {
    if (i >= s.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {need + 1, true};
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Sequence s = next_sequence(text);
    if (!s.valid) return false;
    text.remove_prefix(s.length);
  }
  return true;
}

std::size_t unfinished_tail(std::string_view raw) {
  for (std::size_t back = 1; back <= 3 && back <= raw.size(); ++back) {
    const auto byte = static_cast<unsigned char>(raw[raw.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t need = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1;
    return need > back ? back : 0;
  }
  return 0;
}

std::string to_utf8(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  while (!raw.empty()) {
    const Sequence s = next_sequence(raw);
    if (s.valid) {
      out.append(raw.substr(0, s.length));
    } else {
      out.append("\xEF\xBF\xBD");
    }
    raw.remove_prefix(s.length);
  }
  return out;
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t substitution = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string last_lines(std::string_view text, std::size_t count) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::size_t start = text.size();
  for (std::size_t i = 0; i < count && start != std::string_view::npos && start > 0; ++i) {
    start = text.rfind('\n', start - 1);
  }
  return std::string(start == std::string_view::npos ? text : text.substr(start == 0 ? 0 : start + 1));
}

}  // namespace prims

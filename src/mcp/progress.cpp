#include "mcp/progress.h"

#include <utility>

namespace prims::mcp {

void ProgressMeter::append(std::string_view text) {
  pending_ += text;
  if (pending_.size() <= kMostText) return;
  std::size_t cut = pending_.size() - kMostText;
  // A character that is cut in half goes as a whole: UTF-8 continuation bytes are 10xxxxxx.
  while (cut < pending_.size() && (static_cast<unsigned char>(pending_[cut]) & 0xC0U) == 0x80U) ++cut;
  pending_.erase(0, cut);
}

Clock::time_point ProgressMeter::due() const {
  if (pending_.empty()) return last_ + kSignOfLife;
  return count_ == 0 ? last_ : last_ + kSpacing;
}

std::optional<ProgressUpdate> ProgressMeter::take(Clock::time_point now) {
  if (now < due()) return std::nullopt;
  last_ = now;
  return next();
}

std::optional<ProgressUpdate> ProgressMeter::finish() {
  if (pending_.empty()) return std::nullopt;
  return next();
}

ProgressUpdate ProgressMeter::next() {
  return ProgressUpdate{++count_, std::exchange(pending_, {})};
}

}  // namespace prims::mcp

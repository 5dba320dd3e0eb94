// When progress of one call is said, and what. Time is passed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"

namespace prims::mcp {

struct ProgressUpdate {
  std::int64_t progress = 0;  ///< 1, 2, 3, ...
  std::string message;        ///< the text since the update before; empty: only a sign of life
};

/// Collects text and gives it out at most five times a second: the first piece at once, the rest as it
/// becomes due.
class ProgressMeter {
 public:
  static constexpr Milliseconds kSpacing{200};
  static constexpr Milliseconds kSignOfLife{10'000};
  static constexpr std::size_t kMostText = 8 << 10;  ///< of one update; of more text the tail is kept

  explicit ProgressMeter(Clock::time_point start) : last_(start) {}

  void append(std::string_view text);

  /// The moment at which take() gives an update if nothing else is appended.
  Clock::time_point due() const;

  /// An update, when one is due.
  std::optional<ProgressUpdate> take(Clock::time_point now);

  /// The text that has not been given out yet; called once, right before the result.
  std::optional<ProgressUpdate> finish();

 private:
  ProgressUpdate next();

  std::string pending_;
  std::int64_t count_ = 0;
  Clock::time_point last_;
};

}  // namespace prims::mcp

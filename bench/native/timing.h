// When calls start, and how long they took.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

using Nanoseconds = std::int64_t;

/// CLOCK_MONOTONIC, which every process of the machine shares.
Nanoseconds now();
void sleep_until(Nanoseconds moment);

/// Calls at a fixed rate from `start` on, or one after the other when there is no rate.
struct Schedule {
  Nanoseconds start = 0;   ///< of the first call; 0: at once
  Nanoseconds period = 0;  ///< 0: back to back
  std::int64_t count = 0;  ///< calls in all, those of the warm-up included

  Nanoseconds due(std::int64_t index) const { return start + index * period; }
};

/// What one run measured. The first `warm_up` calls are done and forgotten.
class Samples {
 public:
  explicit Samples(std::int64_t warm_up) : warm_up_(warm_up) {}

  void add(Nanoseconds started, Nanoseconds ended);
  /// A call that was refused, went wrong or said something else than expected. The first one is shown.
  void add_failure(const std::string& what);

  /// One JSON object on standard output: durations in nanoseconds, failures, time from the end of the warm-up
  /// to the end of the last call.
  void print() const;

 private:
  std::int64_t warm_up_;
  std::vector<Nanoseconds> durations_;
  std::int64_t failures_ = 0;
  Nanoseconds began_ = 0;
  Nanoseconds ended_ = 0;
};

}  // namespace bench

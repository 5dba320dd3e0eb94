// Points in time that waits must not pass. Monotonic, so clock changes do not matter.
#pragma once

#include <chrono>

namespace prims {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

struct Deadline {
  Clock::time_point at = Clock::time_point::max();

  static Deadline after(Clock::duration span) { return Deadline{Clock::now() + span}; }
  static Deadline never() { return Deadline{}; }
  bool passed() const { return at != Clock::time_point::max() && Clock::now() >= at; }
};

}  // namespace prims

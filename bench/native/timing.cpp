#include "timing.h"

#include <time.h>

#include <cstdio>

namespace bench {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;

}  // namespace

Nanoseconds now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

void sleep_until(Nanoseconds moment) {
  const timespec time{.tv_sec = moment / kSecond, .tv_nsec = moment % kSecond};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

void Samples::add(Nanoseconds started, Nanoseconds ended) {
  if (warm_up_ > 0) {
    if (--warm_up_ == 0) began_ = ended;
    return;
  }
  if (began_ == 0) began_ = started;
  ended_ = ended;
  durations_.push_back(ended - started);
}

void Samples::add_failure(const std::string& what) {
  if (failures_++ == 0) std::fprintf(stderr, "first failure: %.2000s\n", what.c_str());
}

void Samples::print() const {
  std::printf("{\"failures\": %lld, \"elapsed\": %lld, \"samples\": [", static_cast<long long>(failures_),
              static_cast<long long>(ended_ - began_));
  const char* comma = "";
  for (const Nanoseconds duration : durations_) {
    std::printf("%s%lld", comma, static_cast<long long>(duration));
    comma = ",";
  }
  std::printf("]}\n");
}

}  // namespace bench

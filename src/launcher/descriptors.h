// Descriptors on their way from a message to the numbers 0, 1, 2, ... of a program.
#pragma once

#include <cstdint>

#include "launcher/channel.h"
#include "launcher/failure.h"

namespace prims::launcher {

struct Descriptors {
  static constexpr int kStandard = 3;
  int fds[wire::kMaxDescriptors + kStandard] = {};
  int count = 0;
};

/// Copies those of `message` from number `first` on to numbers that are in nobody's way. Those among 0, 1, 2
/// that `missing` (bits) names become what descriptor 0 is here: /dev/null.
Failure park(const Message& message, std::size_t first, std::uint32_t missing, Descriptors& parked);

/// Gives them their numbers; everything else is closed.
Failure place(const Descriptors& parked);

void close_all(const Message& message);
void close_all(const Descriptors& parked);

}  // namespace prims::launcher

#include "launcher/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include "launcher/kernel.h"

namespace prims::launcher {
namespace {

/// Where they wait, out of the way of the numbers they get.
constexpr int kParking = 64;

Failure park_one(int fd, Descriptors& parked) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, kParking);
  LAUNCHER_TRY(check("park descriptor", copy));
  parked.fds[parked.count++] = copy;
  return {};
}

}  // namespace

Failure park(const Message& message, std::size_t first, std::uint32_t missing, Descriptors& parked) {
  std::size_t next = first;
  while (parked.count < Descriptors::kStandard || next < message.descriptor_count) {
    const int number = parked.count;
    const bool absent = number < Descriptors::kStandard && (missing & (1U << number)) != 0;
    if (!absent && next >= message.descriptor_count) return Failure{"start: descriptors", EPROTO};
    LAUNCHER_TRY(park_one(absent ? STDIN_FILENO : message.descriptors[next++], parked));
  }
  return {};
}

Failure place(const Descriptors& parked) {
  for (int number = 0; number < parked.count; ++number) {
    LAUNCHER_TRY(check("dup2", dup2(parked.fds[number], number)));
  }
  const auto first_unused = static_cast<unsigned>(parked.count);
  return check("close descriptors", kernel::close_range(first_unused, ~0U, 0));
}

void close_all(const Message& message) {
  for (std::size_t i = 0; i < message.descriptor_count; ++i) close(message.descriptors[i]);
}

void close_all(const Descriptors& parked) {
  for (int i = 0; i < parked.count; ++i) close(parked.fds[i]);
}

}  // namespace prims::launcher

// What processes used, from the kernel's form into the wire's.
#pragma once

#include <sys/resource.h>

#include "launcher/wire.h"

namespace prims::launcher {

inline std::uint64_t microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec);
}

inline wire::CpuUsage cpu_usage(const rusage& used) {
  return {microseconds(used.ru_utime), microseconds(used.ru_stime),
          static_cast<std::uint64_t>(used.ru_maxrss)};
}

}  // namespace prims::launcher

#include "sandbox/limit_backend.h"

#include "base/log.h"
#include "sandbox/cgroup1.h"
#include "sandbox/watchdog.h"

namespace prims::sandbox {

std::unique_ptr<LimitBackend> make_limit_backend() {
  auto cgroup1 = make_cgroup1_backend();
  if (cgroup1) return *std::move(cgroup1);
  log::debug("limits by rlimits and a watchdog: {}", cgroup1.error().message);
  return make_watchdog_backend();
}

}  // namespace prims::sandbox

#include "sandbox/cgroup2.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/random.h"

namespace prims::sandbox {
namespace {

/// The directory of this process's own group, if a unified hierarchy is mounted.
std::optional<std::string> own_group() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string mount_point;
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream fields(line);
    std::string id, parent, device, root;
    fields >> id >> parent >> device >> root >> mount_point;
  }
  if (mount_point.empty()) return std::nullopt;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::")) return mount_point + (line == "0::/" ? "" : line.substr(3));
  }
  return std::nullopt;
}

std::string missing_controllers(const std::string& group) {
  std::ifstream file(group + "/cgroup.controllers");
  std::string all;
  std::getline(file, all);
  all = ' ' + all + ' ';
  std::string missing;
  for (const std::string_view needed : std::array{"memory", "pids", "cpu"}) {
    if (all.find(fmt::format(" {} ", needed)) == std::string::npos) missing += fmt::format(" {}", needed);
  }
  return missing;
}

}  // namespace

Finding find_cgroup2() {
  Finding finding{.name = "cgroup v2", .attempt = "a group is made below this process's own"};
  finding.fix = "not used by this version: rlimits and a watchdog enforce limits where cgroup v1 does not";
  const auto group = own_group();
  if (!group) {
    finding.detail = "no unified hierarchy is mounted";
    return finding;
  }
  const std::string probe = fmt::format("{}/prims-probe-{}", *group, random_token(6));
  if (::mkdir(probe.c_str(), 0755) != 0) {
    finding.detail = fmt::format("mkdir below {}: {}", *group, errno_text(errno));
    return finding;
  }
  ::rmdir(probe.c_str());
  if (const std::string missing = missing_controllers(*group); !missing.empty()) {
    finding.detail = fmt::format("{} lacks the controllers{}", *group, missing);
    return finding;
  }
  finding.holds = true;
  finding.detail = "writable, with memory, pids and cpu; not used by this version";
  finding.fix.clear();
  return finding;
}

}  // namespace prims::sandbox

// Where the cgroup v1 controllers are mounted, and this process's own directory in each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::sandbox {

enum class Controller { memory, pids, cpu, cpuacct };
std::string_view to_string(Controller controller);

/// One mounted hierarchy, the controllers of ours that it carries, and where in it this process is.
struct Cgroup1Mount {
  std::vector<Controller> controllers;
  std::string mount_point;
  std::string own_path;  ///< directory of this process's cgroup, absolute
};  /// From the texts of /proc/self/mountinfo and /proc/self/cgroup. Each controller is in one mount at most.
std::vector<Cgroup1Mount> find_cgroup1_mounts(std::string_view mountinfo, std::string_view cgroup);

/// A directory of our own in one hierarchy, made and locked. Removed with this when no process is left in it.
class ServerCgroup {
 public:
  /// `name` is unique on this machine and the same in every hierarchy.
  static Result<ServerCgroup> create(const Cgroup1Mount& mount, const std::string& name);

  ServerCgroup(ServerCgroup&&) = default;
  ServerCgroup& operator=(ServerCgroup&&) = delete;
  ~ServerCgroup();

  bool carries(Controller controller) const;
  int directory() const { return directory_.get(); }

  /// Removes it and the groups in it. False: a process is left in one.
  bool remove();

 private:
  ServerCgroup(std::vector<Controller> controllers, std::string path, UniqueFd directory)
      : controllers_(std::move(controllers)), path_(std::move(path)), directory_(std::move(directory)) {}

  std::vector<Controller> controllers_;
  std::string path_;
  UniqueFd directory_;  // carries the lock
};

/// Removes what servers that died have left anywhere in the hierarchy: their directories are those with the
/// prefix below that nobody has locked. May take long where there are many cgroups.
void sweep_dead_servers(const Cgroup1Mount& mount);

/// Prefix of every server's directory.
inline constexpr std::string_view kServerPrefix = "prims-";

/// The whole of a small control file, read from its start.
Result<std::string> read_control(int directory, const std::string& name);
Result<> write_control(int directory, const std::string& name, std::string_view value);

}  // namespace prims::sandbox

// The cgroup v1 directories of one sandbox, one in each hierarchy, with the files open that every sandbox
// needs.
//
// Making and removing them costs more than most programs run, so they are used again once nobody is in them
// and their counters can be set back; those whose counters cannot are removed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "sandbox/cgroup1_hierarchy.h"
#include "sandbox/outcome.h"
#include "sandbox/spec.h"

namespace prims::sandbox {

/// This process's directory in each hierarchy.
class Hierarchies {
 public:
  explicit Hierarchies(std::vector<ServerCgroup> servers) : servers_(std::move(servers)) {}
  Hierarchies(const Hierarchies&) = delete;
  Hierarchies& operator=(const Hierarchies&) = delete;
  /// Waits a moment for killed processes to be reaped.
  ~Hierarchies();

  const std::vector<ServerCgroup>& all() const { return servers_; }
  int directory(Controller controller) const;

 private:
  std::vector<ServerCgroup> servers_;
};

class Cgroup1Directories {
 public:
  static Result<std::unique_ptr<Cgroup1Directories>> make(std::shared_ptr<const Hierarchies> hierarchies,
                                                          std::string name, const Limits& limits);
  Cgroup1Directories(const Cgroup1Directories&) = delete;
  Cgroup1Directories& operator=(const Cgroup1Directories&) = delete;
  ~Cgroup1Directories() = default;

  const std::string& name() const { return name_; }
  bool has_limits(const Limits& limits) const;

  Result<> add(pid_t pid);
  std::span<const int> entries() const { return entry_numbers_; }
  std::vector<pid_t> processes() const;
  /// The same for other threads, also when these directories are gone.
  std::function<std::vector<pid_t>()> lister() const;

  Milliseconds cpu_time() const;
  Bytes peak_memory() const;
  std::uint32_t peak_processes() const;
  bool ran_out_of_memory() const;
  bool refused_a_process() const;

  /// Kills who is in them. New processes are refused from the first line on, so few passes reach all.
  void kill();

  /// Nobody is in them, and everything is counted from the beginning again. False: remove them.
  bool renew();

  /// True when they are gone everywhere. EBUSY: the last processes have not been reaped.
  bool remove() const;

 private:
  Cgroup1Directories(std::shared_ptr<const Hierarchies> hierarchies, std::string name, const Limits& limits)
      : hierarchies_(std::move(hierarchies)), name_(std::move(name)), limits_(limits) {}

  Result<> set_limits();
  Result<> open_files();
  Result<UniqueFd> open(Controller controller, const char* file, int flags) const;
  Result<> write(Controller controller, const char* file, std::string_view value) const;

  std::shared_ptr<const Hierarchies> hierarchies_;  // shared with all groups
  const std::string name_;
  const Limits limits_;
  bool killed_ = false;
  UniqueFd oom_control_, memory_peak_, cpu_usage_, process_events_;
  UniqueFd process_peak_;  ///< what there is now where the kernel keeps no peak
  std::vector<UniqueFd> entries_;
  std::vector<int> entry_numbers_;
};

/// Those that wait to be used again. From any thread.
class SpareDirectories {
 public:
  std::unique_ptr<Cgroup1Directories> take(const Limits& limits);
  /// False: there are enough.
  bool put(std::unique_ptr<Cgroup1Directories>& directories);
  /// These, if they still wait.
  std::unique_ptr<Cgroup1Directories> take_back(const Cgroup1Directories* directories);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Cgroup1Directories>> waiting_;
};

}  // namespace prims::sandbox

#include "sandbox/cgroup1.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "sandbox/background.h"
#include "sandbox/cgroup1_directories.h"
#include "sandbox/cgroup1_hierarchy.h"
#include "sandbox/directory_watch.h"

namespace prims::sandbox {
namespace {

constexpr Milliseconds kFirstRetry{2};
constexpr Milliseconds kLastRetry{256};
constexpr Milliseconds kSpareLife{5000};  // without use
constexpr int kMostRetries = 60;  // about 14 s; what still lives then waits for the next start's sweep

std::string whole_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Directories whose sandbox is over: they wait for their last process to be reaped, then a while for another
/// sandbox.
class Retirement {
 public:
  Retirement(std::unique_ptr<Cgroup1Directories> directories, std::shared_ptr<SpareDirectories> spares)
      : directories_(std::move(directories)), spares_(std::move(spares)) {}

  std::optional<Milliseconds> attempt() {
    if (parked_ != nullptr) {
      directories_ = spares_->take_back(std::exchange(parked_, nullptr));
      if (!directories_) return std::nullopt;
    } else if (attempts_ == 0) {
      if (!directories_->processes().empty()) return next_pause();
      parked_ = directories_.get();
      if (directories_->renew() && spares_->put(directories_)) return kSpareLife;
      parked_ = nullptr;
    }
    if (directories_->remove()) return std::nullopt;
    directories_->kill();
    if (attempts_ <= kMostRetries) return next_pause();
    log::warning("cgroup {} cannot be removed: a process in it does not end", directories_->name());
    return std::nullopt;
  }

 private:
  Milliseconds next_pause() {
    ++attempts_;
    return std::exchange(pause_, std::min(2 * pause_, kLastRetry));
  }

  std::unique_ptr<Cgroup1Directories> directories_;
  const Cgroup1Directories* parked_ = nullptr;  ///< among the spares, unless somebody has taken them
  std::shared_ptr<SpareDirectories> spares_;    // with the backend and all groups
  int attempts_ = 0;
  Milliseconds pause_ = kFirstRetry;
};

class Cgroup1Group : public LimitGroup {
 public:
  Cgroup1Group(std::unique_ptr<Cgroup1Directories> directories, const Limits& limits,
               std::shared_ptr<SpareDirectories> spares, Background& background, Background& closer)
      : limits_(limits),
        directories_(std::move(directories)),
        spares_(std::move(spares)),
        background_(background),
        watch_(background, closer, directories_->lister()) {}

  ~Cgroup1Group() override {
    background_.add([retirement = std::make_shared<Retirement>(std::move(directories_), spares_)] {
      return retirement->attempt();
    });
  }

  Result<> add(pid_t pid) override { return directories_->add(pid); }

  std::span<const int> entries() const override { return directories_->entries(); }

  std::optional<Outcome> breached() override {
    if (const auto disk = watch_.breached()) return *disk;
    if (directories_->ran_out_of_memory()) return OutOfMemory{limits_.memory, directories_->peak_memory()};
    if (limits_.cpu_time.count() > 0) {
      if (const Milliseconds used = directories_->cpu_time(); used >= limits_.cpu_time) {
        return CpuTimeExceeded{limits_.cpu_time, used};
      }
    }
    return std::nullopt;
  }

  std::optional<ProcessLimit> process_limit_hit() override {
    if (!directories_->refused_a_process()) return std::nullopt;
    return ProcessLimit{limits_.processes, limits_.processes};
  }

  Usage usage() override {
    return {directories_->cpu_time(), directories_->peak_memory(), directories_->peak_processes(),
            watch_.used()};
  }

  void kill_all() override { directories_->kill(); }

  Result<> watch_directory(WatchedDirectory directory) override { return watch_.watch(std::move(directory)); }

  UniqueFd close_directories() override { return watch_.close(); }

 private:
  const Limits limits_;
  std::unique_ptr<Cgroup1Directories> directories_;
  std::shared_ptr<SpareDirectories> spares_;  // with the backend and all groups
  Background& background_;
  DirectoryWatch watch_;
};

class Cgroup1Backend : public LimitBackend {
 public:
  Cgroup1Backend(std::vector<ServerCgroup> servers, std::vector<Cgroup1Mount> mounts)
      : hierarchies_(std::make_shared<const Hierarchies>(std::move(servers))) {
    background_.add([mounts = std::move(mounts)]() -> std::optional<Milliseconds> {
      std::ranges::for_each(mounts, sweep_dead_servers);
      return std::nullopt;
    });
  }

  Result<std::unique_ptr<LimitGroup>> make_group(std::string_view name, const Limits& limits) override {
    std::unique_ptr<Cgroup1Directories> directories = spares_->take(limits);
    if (!directories) {
      auto made = Cgroup1Directories::make(hierarchies_, std::string(name), limits);
      PRIMS_ASSIGN_OR_RETURN(directories, std::move(made));
    }
    return std::make_unique<Cgroup1Group>(std::move(directories), limits, spares_, background_, closer_);
  }

  Enforcement enforcement() const override { return {"cgroup1", "cgroup1", "cgroup1"}; }

  std::vector<Rlimit> rlimits(const Limits& limits) const override {
    return make_rlimits(limits, MemoryBound::group);
  }

  bool counts_unmapped_memory() const override { return true; }

 private:
  std::shared_ptr<const Hierarchies> hierarchies_;  // shared with groups and their removal
  std::shared_ptr<SpareDirectories> spares_ = std::make_shared<SpareDirectories>();
  Background background_;
  Background closer_;
};

}  // namespace

Result<std::unique_ptr<LimitBackend>> make_cgroup1_backend() {
  const std::string mountinfo = whole_file("/proc/self/mountinfo");
  const std::string cgroup = whole_file("/proc/self/cgroup");
  const std::vector<Cgroup1Mount> mounts = find_cgroup1_mounts(mountinfo, cgroup);
  for (const Controller needed :
       {Controller::memory, Controller::pids, Controller::cpu, Controller::cpuacct}) {
    const auto carries = [needed](const Cgroup1Mount& mount) {
      return std::ranges::find(mount.controllers, needed) != mount.controllers.end();
    };
    if (std::ranges::none_of(mounts, carries)) {
      return fail(Kind::unavailable,
                  fmt::format("no cgroup v1 hierarchy with the {} controller", to_string(needed)));
    }
  }
  const std::string name = fmt::format("{}{}-{}", kServerPrefix, ::getpid(), random_token(6));
  std::vector<ServerCgroup> servers;
  for (const Cgroup1Mount& mount : mounts) {
    PRIMS_ASSIGN_OR_RETURN(auto server, ServerCgroup::create(mount, name));
    servers.push_back(std::move(server));
  }
  auto backend = std::make_unique<Cgroup1Backend>(std::move(servers), mounts);
  PRIMS_RETURN_ON_ERROR(backend->make_group("probe", Limits{}));
  return backend;
}

}  // namespace prims::sandbox

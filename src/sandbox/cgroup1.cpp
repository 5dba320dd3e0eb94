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
#include "sandbox/cgroup1_hierarchy.h"
#include "sandbox/directory_watch.h"

namespace prims::sandbox {
namespace {

constexpr Milliseconds kFirstRetry{2};
constexpr Milliseconds kLastRetry{256};
constexpr int kMostRetries = 60;  // about 14 s; what still lives then waits for the next start's sweep
constexpr Milliseconds kFarewell{1000};
constexpr std::uint64_t kTcpShare = 4;         // of the memory limit, on top of it
constexpr std::uint64_t kCpuPeriod = 100'000;  // microseconds

std::uint64_t first_number(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The number after `key` in lines of "key number".
std::uint64_t number_after(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  return at == std::string_view::npos ? 0 : first_number(text.substr(at + key.size()));
}

std::string whole_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// This process's directories, and the removal of the groups in them.
class Hierarchies {
 public:
  explicit Hierarchies(std::vector<ServerCgroup> servers) : servers_(std::move(servers)) {}
  Hierarchies(const Hierarchies&) = delete;
  Hierarchies& operator=(const Hierarchies&) = delete;

  /// Waits a moment for killed processes to be reaped.
  ~Hierarchies() {
    const Deadline deadline = Deadline::after(kFarewell);
    const auto remove = [](ServerCgroup& server) { return server.remove(); };
    while (!std::ranges::all_of(servers_, remove) && !deadline.passed())
      std::this_thread::sleep_for(kFirstRetry);
  }

  const std::vector<ServerCgroup>& all() const { return servers_; }

  int directory(Controller controller) const {
    for (const ServerCgroup& server : servers_) {
      if (server.carries(controller)) return server.directory();
    }
    return -1;
  }

  std::vector<pid_t> processes(const std::string& name) const {
    const auto text = read_control(directory(Controller::pids), name + "/cgroup.procs");
    std::vector<pid_t> found;
    std::istringstream lines(text.value_or(""));
    for (pid_t pid = 0; lines >> pid;) {
      if (pid > 0) found.push_back(pid);  // 0: a process of another pid namespace
    }
    return found;
  }

  /// Kills what is in the group. New processes are refused from the first line on, so few passes reach all.
  void kill(const std::string& name) const {
    (void)write_control(directory(Controller::pids), name + "/pids.max", "0");
    for (int pass = 0; pass < 3; ++pass) {
      for (const pid_t pid : processes(name)) ::kill(pid, SIGKILL);
    }
  }

  /// True when it is gone everywhere. EBUSY: the last processes have not been reaped.
  bool remove(const std::string& name) const {
    bool gone = true;
    for (const ServerCgroup& server : servers_) {
      gone &= ::unlinkat(server.directory(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
    }
    return gone;
  }

 private:
  std::vector<ServerCgroup> servers_;
};

/// Groups that wait for their last process to be reaped.
class Removal {
 public:
  Removal(std::shared_ptr<const Hierarchies> hierarchies, std::string name)
      : hierarchies_(std::move(hierarchies)), name_(std::move(name)) {}

  std::optional<Milliseconds> attempt() {
    if (hierarchies_->remove(name_)) return std::nullopt;
    hierarchies_->kill(name_);
    if (++attempts_ > kMostRetries) {
      log::warning("cgroup {} cannot be removed: a process in it does not end", name_);
      return std::nullopt;
    }
    return std::exchange(pause_, std::min(2 * pause_, kLastRetry));
  }

 private:
  std::shared_ptr<const Hierarchies> hierarchies_;  // outlives the backend while removals run
  std::string name_;
  int attempts_ = 0;
  Milliseconds pause_ = kFirstRetry;
};

class Cgroup1Group : public LimitGroup {
 public:
  static Result<std::unique_ptr<LimitGroup>> create(std::string name, const Limits& limits,
                                                    std::shared_ptr<const Hierarchies> hierarchies,
                                                    Background& background, Background& closer) {
    std::unique_ptr<Cgroup1Group> group(
        new Cgroup1Group(std::move(name), limits, std::move(hierarchies), background, closer));
    PRIMS_RETURN_ON_ERROR(group->make_directories());
    PRIMS_RETURN_ON_ERROR(group->set_limits());
    PRIMS_RETURN_ON_ERROR(group->open_entries());
    return group;
  }

  ~Cgroup1Group() override {
    background_.add(
        [removal = std::make_shared<Removal>(hierarchies_, name_)] { return removal->attempt(); });
  }

  Result<> add(pid_t pid) override {
    const std::string text = std::to_string(pid);
    for (const ServerCgroup& server : hierarchies_->all()) {
      PRIMS_RETURN_ON_ERROR(write_control(server.directory(), name_ + "/cgroup.procs", text));
    }
    return {};
  }

  std::span<const int> entries() const override { return entry_numbers_; }

  std::optional<Outcome> breached() override {
    if (const auto disk = directories_.breached()) return *disk;
    std::array<char, 128> text;
    const ssize_t size = ::pread(oom_control_.get(), text.data(), text.size(), 0);
    if (size > 0 && number_after({text.data(), static_cast<std::size_t>(size)}, "oom_kill ") > 0) {
      return OutOfMemory{limits_.memory, peak_memory()};
    }
    if (limits_.cpu_time.count() > 0) {
      if (const Milliseconds used = cpu_time(); used >= limits_.cpu_time) {
        return CpuTimeExceeded{limits_.cpu_time, used};
      }
    }
    return std::nullopt;
  }

  std::optional<ProcessLimit> process_limit_hit() override {
    if (number_after(read(Controller::pids, "pids.events"), "max ") == 0) return std::nullopt;
    return ProcessLimit{limits_.processes, limits_.processes};
  }

  Usage usage() override { return {cpu_time(), peak_memory(), peak_processes(), directories_.used()}; }

  void kill_all() override { hierarchies_->kill(name_); }

  Result<> watch_directory(WatchedDirectory directory) override {
    return directories_.watch(std::move(directory));
  }

  UniqueFd close_directories() override { return directories_.close(); }

 private:
  Cgroup1Group(std::string name, const Limits& limits, std::shared_ptr<const Hierarchies> hierarchies,
               Background& background, Background& closer)
      : name_(std::move(name)),
        limits_(limits),
        hierarchies_(std::move(hierarchies)),
        background_(background),
        directories_(background, closer,
                     [hierarchies = hierarchies_, name = name_] { return hierarchies->processes(name); }) {}

  Result<> make_directories() const {
    for (const ServerCgroup& server : hierarchies_->all()) {
      if (::mkdirat(server.directory(), name_.c_str(), 0755) != 0) return fail_errno("mkdir cgroup " + name_);
    }
    return {};
  }

  Result<> set_limits() {
    const int memory = hierarchies_->directory(Controller::memory);
    const std::string bytes = std::to_string(limits_.memory.count);
    PRIMS_RETURN_ON_ERROR(write_control(memory, name_ + "/memory.limit_in_bytes", bytes));
    // Missing where the kernel does not account swap; then swapped pages do not count.
    (void)write_control(memory, name_ + "/memory.memsw.limit_in_bytes", bytes);
    // Buffers of TCP are the only ones that have a count of their own; at its limit they grow no further.
    (void)write_control(memory, name_ + "/memory.kmem.tcp.limit_in_bytes",
                        std::to_string(limits_.memory.count / kTcpShare));
    const std::string processes = std::to_string(limits_.processes + kOwnProcesses);
    PRIMS_RETURN_ON_ERROR(
        write_control(hierarchies_->directory(Controller::pids), name_ + "/pids.max", processes));
    if (limits_.cpus > 0 && limits_.cpus < std::thread::hardware_concurrency()) {
      const std::string quota = std::to_string(limits_.cpus * kCpuPeriod);
      PRIMS_RETURN_ON_ERROR(
          write_control(hierarchies_->directory(Controller::cpu), name_ + "/cpu.cfs_quota_us", quota));
    }
    oom_control_ = UniqueFd(::openat(memory, (name_ + "/memory.oom_control").c_str(), O_RDONLY | O_CLOEXEC));
    return oom_control_ ? Result<>{} : fail_errno("open memory.oom_control");
  }

  Result<> open_entries() {
    for (const ServerCgroup& server : hierarchies_->all()) {
      // A task that moves itself by `tasks` needs no lock that waits for all processors.
      UniqueFd entry(::openat(server.directory(), (name_ + "/tasks").c_str(), O_WRONLY | O_CLOEXEC));
      if (!entry) return fail_errno("open tasks of " + name_);
      entry_numbers_.push_back(entry.get());
      entries_.push_back(std::move(entry));
    }
    return {};
  }

  std::string read(Controller controller, const std::string& file) const {
    return read_control(hierarchies_->directory(controller), name_ + '/' + file).value_or("");
  }

  Bytes peak_memory() const {
    return Bytes{first_number(read(Controller::memory, "memory.max_usage_in_bytes"))};
  }

  Milliseconds cpu_time() const {
    const std::chrono::nanoseconds used(first_number(read(Controller::cpuacct, "cpuacct.usage")));
    return std::chrono::duration_cast<Milliseconds>(used);
  }

  std::uint32_t peak_processes() const {
    const std::string peak = read(Controller::pids, "pids.peak");  // missing in older kernels
    const std::string seen = peak.empty() ? read(Controller::pids, "pids.current") : peak;
    return static_cast<std::uint32_t>(first_number(seen));
  }

  std::string name_;
  Limits limits_;
  std::shared_ptr<const Hierarchies> hierarchies_;
  Background& background_;
  DirectoryWatch directories_;
  UniqueFd oom_control_;
  std::vector<UniqueFd> entries_;
  std::vector<int> entry_numbers_;
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
    return Cgroup1Group::create(std::string(name), limits, hierarchies_, background_, closer_);
  }

  Enforcement enforcement() const override { return {"cgroup1", "cgroup1", "cgroup1"}; }

  std::vector<Rlimit> rlimits(const Limits& limits) const override {
    return make_rlimits(limits, MemoryBound::group);
  }

  bool counts_unmapped_memory() const override { return true; }

 private:
  std::shared_ptr<const Hierarchies> hierarchies_;  // shared with groups and their removal
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

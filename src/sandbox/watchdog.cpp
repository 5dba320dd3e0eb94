#include "sandbox/watchdog.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "sandbox/background.h"
#include "sandbox/directory_watch.h"
#include "sandbox/process_tree.h"

namespace prims::sandbox {
namespace {

constexpr Milliseconds kCalmPause{40};  // the sample itself takes some of the 50 ms
constexpr Milliseconds kAlertPause{10};
constexpr Milliseconds kExactPause{250};

/// The kernel's usual default for buffers, which sandboxes cannot enlarge, and some for its bookkeeping.
constexpr Bytes kSocketBuffers = kib(256);

/// Below the server, whose looking must not wait for what it looks at.
constexpr int kNiceness = 5;

/// CPU time of processes that come and go. Two counts, each of which a program can keep low in its own way:
/// what a process had used when it was last seen (misses the time after that), and what its parents collected
/// from ended children (misses children that nobody waits for). The larger one stands.
class CpuClock {
 public:
  Milliseconds update(const std::vector<ProcessSample>& processes) {
    std::uint64_t collected = 0;
    std::unordered_map<pid_t, Seen> now;
    for (const ProcessSample& process : processes) {
      collected += process.own_ticks + process.children_ticks;
      now.emplace(process.pid, Seen{process.start_time, process.own_ticks});
    }
    for (const auto& [pid, before] : seen_) {
      const auto still = now.find(pid);
      if (still == now.end() || still->second.start_time != before.start_time) ended_ticks_ += before.ticks;
    }
    seen_ = std::move(now);
    std::uint64_t counted = ended_ticks_;
    for (const auto& [pid, process] : seen_) counted += process.ticks;
    most_ticks_ = std::max({most_ticks_, counted, collected});
    static const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    return Milliseconds(most_ticks_ * 1000 / ticks_per_second);
  }

 private:
  struct Seen {
    std::uint64_t start_time = 0;
    std::uint64_t ticks = 0;
  };

  std::unordered_map<pid_t, Seen> seen_;
  std::uint64_t ended_ticks_ = 0;
  std::uint64_t most_ticks_ = 0;
};

/// Memory of all processes together. Their resident sizes are cheap and count a shared page once per process,
/// so their sum is never too small; the exact figure costs a walk through page tables, milliseconds per
/// gigabyte. It is taken when the cheap one is above the limit, and now and then for the record.
class MemoryGauge {
 public:
  explicit MemoryGauge(Bytes limit) : limit_(limit) {}

  void update(const std::vector<ProcessSample>& processes) {
    const Bytes in_tmpfs = processes.empty() ? Bytes{} : tmpfs_used(processes.back().pid);
    most_ = in_tmpfs;
    for (const ProcessSample& process : processes) {
      most_.count += process.resident.count;
      peak_ = std::max(peak_, process.resident);  // one process's share is certainly used
    }
    if (const Bytes sockets = room_in_sockets(processes); sockets > limit_) peak_ = std::max(peak_, sockets);
    if (most_ <= limit_ && !next_exact_.passed()) return;
    next_exact_ = Deadline::after(kExactPause);
    peak_ = std::max(peak_, exact(processes, in_tmpfs));
  }

  /// The sum of the last update, shared pages counted more than once.
  Bytes most() const { return most_; }
  Bytes peak() const { return peak_; }

 private:
  /// What buffers of sockets could hold: what they do hold is in no figure of a process.
  static Bytes room_in_sockets(const std::vector<ProcessSample>& processes) {
    if (processes.empty()) return {};
    return Bytes{open_sockets(processes.front().pid) * kSocketBuffers.count};
  }

  static Bytes exact(const std::vector<ProcessSample>& processes, Bytes in_tmpfs) {
    Bytes anonymous;
    Bytes shared;
    for (const ProcessSample& process : processes) {
      if (const auto share = memory_share(process.pid)) {
        anonymous.count += share->anonymous.count;
        shared.count += share->shared.count;
      } else if (sample_process(process.pid)) {
        anonymous.count += process.resident.count;  // it lives and hides: all of it counts
      }
    }
    // A mapped file of a tmpfs is in both of these; whichever is larger is certainly used.
    return Bytes{anonymous.count + std::max(shared, in_tmpfs).count};
  }

  Bytes limit_;
  Bytes most_;
  Bytes peak_;
  Deadline next_exact_{Clock::time_point{}};
};

/// The first of them is the sandbox's init, with which all others die.
void kill_each(const std::vector<ProcessSample>& processes) {
  for (const ProcessSample& process : processes) ::kill(process.pid, SIGKILL);
}

/// What the sampling thread and the loop's thread share about one group.
class Watched {
 public:
  explicit Watched(const Limits& limits) : limits_(limits), memory_(limits.memory) {}

  Result<> add(pid_t pid) {
    const auto process = sample_process(pid);
    if (!process) return fail(Kind::not_found, "the process to watch has ended");
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), kNiceness);
    const std::scoped_lock lock(mutex_);
    roots_.push_back({pid, process->start_time});
    return {};
  }

  std::optional<Milliseconds> sample() {
    if (stopped) return std::nullopt;
    if (!wanted.exchange(false)) return kCalmPause;
    const std::vector<ProcessSample> processes = tree();
    const Milliseconds cpu = cpu_clock_.update(processes);
    memory_.update(processes);
    // As a kernel's memory killer would: whoever polls may be late.
    if (memory_.peak() > limits_.memory) kill_each(processes);
    std::uint32_t threads = 0;
    for (const ProcessSample& process : processes) threads += process.threads;
    const bool near = memory_.most().count > limits_.memory.count / 2 || threads > limits_.processes / 2;
    const std::scoped_lock lock(mutex_);
    usage_.cpu = std::max(usage_.cpu, cpu);
    usage_.peak_memory = memory_.peak();
    usage_.peak_processes = std::max(usage_.peak_processes, threads);
    if (near) wanted = true;  // also while nobody looks
    return near ? kAlertPause : kCalmPause;
  }

  void saw_threads(std::uint32_t count) {
    const std::scoped_lock lock(mutex_);
    usage_.peak_processes = std::max(usage_.peak_processes, count);
  }

  Usage usage() const {
    const std::scoped_lock lock(mutex_);
    return usage_;
  }

  std::vector<ProcessSample> tree() const {
    std::vector<Root> roots;
    {
      const std::scoped_lock lock(mutex_);
      roots = roots_;
    }
    std::vector<ProcessSample> all;
    for (const Root& root : roots) {
      std::vector<ProcessSample> part = sample_tree(root.pid);
      if (part.empty() || part.front().start_time != root.start_time) continue;
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  std::vector<pid_t> process_ids() const {
    std::vector<pid_t> ids;
    for (const ProcessSample& process : tree()) ids.push_back(process.pid);
    return ids;
  }

  std::atomic<bool> stopped = false;
  std::atomic<bool> wanted = true;  ///< somebody looked since the last sample

 private:
  struct Root {
    pid_t pid = 0;
    std::uint64_t start_time = 0;
  };

  const Limits limits_;
  CpuClock cpu_clock_;  // this and the next are the sampling thread's alone
  MemoryGauge memory_;
  mutable std::mutex mutex_;
  std::vector<Root> roots_;
  Usage usage_;
};

class WatchdogGroup : public LimitGroup {
 public:
  WatchdogGroup(const Limits& limits, Background& sampler, Background& walker, Background& closer)
      : limits_(limits),
        watched_(std::make_shared<Watched>(limits)),
        directories_(walker, closer, [watched = watched_] { return watched->process_ids(); }) {
    sampler.add([watched = watched_] { return watched->sample(); });
  }

  ~WatchdogGroup() override {
    watched_->stopped = true;
    kill_all();
  }

  Result<> add(pid_t pid) override { return watched_->add(pid); }

  std::optional<Outcome> breached() override {
    watched_->wanted = true;
    if (const auto disk = directories_.breached()) return *disk;
    const Usage now = watched_->usage();
    if (now.peak_memory > limits_.memory) return OutOfMemory{limits_.memory, now.peak_memory};
    if (limits_.cpu_time.count() > 0 && now.cpu >= limits_.cpu_time) {
      return CpuTimeExceeded{limits_.cpu_time, now.cpu};
    }
    return std::nullopt;
  }

  std::optional<ProcessLimit> process_limit_hit() override {
    const std::uint32_t peak = watched_->usage().peak_processes;
    if (peak < limits_.processes) return std::nullopt;
    return ProcessLimit{limits_.processes, std::min(peak, limits_.processes)};
  }

  void saw_threads(std::uint32_t count) override { watched_->saw_threads(count); }

  Usage usage() override {
    Usage usage = watched_->usage();
    usage.disk = directories_.used();
    return usage;
  }

  void kill_all() override { kill_each(watched_->tree()); }

  Result<> watch_directory(WatchedDirectory directory) override {
    return directories_.watch(std::move(directory));
  }

  UniqueFd close_directories() override { return directories_.close(); }

 private:
  const Limits limits_;
  std::shared_ptr<Watched> watched_;  // shared with the job on the sampler, which may end after this
  DirectoryWatch directories_;
};

class WatchdogBackend : public LimitBackend {
 public:
  Result<std::unique_ptr<LimitGroup>> make_group(std::string_view, const Limits& limits) override {
    return std::make_unique<WatchdogGroup>(limits, sampler_, walker_, closer_);
  }

  Enforcement enforcement() const override { return {"rlimit+watchdog", "rlimit", "watchdog"}; }

  std::vector<Rlimit> rlimits(const Limits& limits) const override {
    return make_rlimits(limits, MemoryBound::processes);
  }

  bool counts_unmapped_memory() const override { return false; }

 private:
  Background sampler_;  // apart from the walks, which may take long
  Background walker_;
  Background closer_;
};

}  // namespace

std::unique_ptr<LimitBackend> make_watchdog_backend() {
  return std::make_unique<WatchdogBackend>();
}

}  // namespace prims::sandbox

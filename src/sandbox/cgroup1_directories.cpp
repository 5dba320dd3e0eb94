#include "sandbox/cgroup1_directories.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <thread>
#include <utility>

#include "base/deadline.h"
#include "sandbox/rlimits.h"

namespace prims::sandbox {
namespace {

constexpr Milliseconds kFarewell{1000};
constexpr Milliseconds kFarewellPause{2};
constexpr std::uint64_t kTcpShare = 4;         // of the memory limit, on top of it
constexpr std::uint64_t kCpuPeriod = 100'000;  // microseconds
constexpr std::size_t kMostSpares = 32;
/// A peak of processes cannot be set back: up to here it does not matter for whoever is next, since init, the
/// program and those who bring it are as many.
constexpr std::uint32_t kSmallestPeak = 4;
/// What may stay charged to a group, for file names and the like that the kernel still remembers.
constexpr Bytes kResidue = mib(4);

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

/// A control file from its start; they are short.
class Content {
 public:
  explicit Content(const UniqueFd& file) {
    const ssize_t got = file ? ::pread(file.get(), text_.data(), text_.size(), 0) : 0;
    size_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 256> text_;
  std::size_t size_ = 0;
};

std::uint64_t number_in(const UniqueFd& file) {
  return first_number(Content(file).text());
}

std::vector<pid_t> processes_in(const Hierarchies& hierarchies, const std::string& name) {
  const auto text = read_control(hierarchies.directory(Controller::pids), name + "/cgroup.procs");
  std::vector<pid_t> found;
  std::istringstream lines(text.value_or(""));
  for (pid_t pid = 0; lines >> pid;) {
    if (pid > 0) found.push_back(pid);  // 0: a process of another pid namespace
  }
  return found;
}

}  // namespace

// --- Hierarchies
// ----------------------------------------------------------------------------------------------------------

Hierarchies::~Hierarchies() {
  const Deadline deadline = Deadline::after(kFarewell);
  const auto remove = [](ServerCgroup& server) { return server.remove(); };
  while (!std::ranges::all_of(servers_, remove) && !deadline.passed())
    std::this_thread::sleep_for(kFarewellPause);
}

int Hierarchies::directory(Controller controller) const {
  for (const ServerCgroup& server : servers_) {
    if (server.carries(controller)) return server.directory();
  }
  return -1;
}

// --- Cgroup1Directories
// ----------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Cgroup1Directories>> Cgroup1Directories::make(
    std::shared_ptr<const Hierarchies> hierarchies, std::string name, const Limits& limits) {
  std::unique_ptr<Cgroup1Directories> made(
      new Cgroup1Directories(std::move(hierarchies), std::move(name), limits));
  const auto fill = [&]() -> Result<> {
    for (const ServerCgroup& server : made->hierarchies_->all()) {
      if (::mkdirat(server.directory(), made->name_.c_str(), 0755) != 0) {
        return fail_errno("mkdir cgroup " + made->name_);
      }
    }
    PRIMS_RETURN_ON_ERROR(made->set_limits());
    return made->open_files();
  };
  if (const Result<> filled = fill(); !filled) {
    made->remove();
    return std::unexpected(filled.error());
  }
  return made;
}

bool Cgroup1Directories::has_limits(const Limits& limits) const {
  return limits.memory == limits_.memory && limits.processes == limits_.processes &&
         limits.cpus == limits_.cpus;
}

Result<UniqueFd> Cgroup1Directories::open(Controller controller, const char* file, int flags) const {
  UniqueFd fd(::openat(hierarchies_->directory(controller), (name_ + '/' + file).c_str(), flags | O_CLOEXEC));
  if (!fd) return fail_errno(std::string("open ") + file);
  return fd;
}

Result<> Cgroup1Directories::write(Controller controller, const char* file, std::string_view value) const {
  return write_control(hierarchies_->directory(controller), name_ + '/' + file, value);
}

Result<> Cgroup1Directories::set_limits() {
  const std::string bytes = std::to_string(limits_.memory.count);
  PRIMS_RETURN_ON_ERROR(write(Controller::memory, "memory.limit_in_bytes", bytes));
  // Missing where the kernel does not account swap; then swapped pages do not count.
  (void)write(Controller::memory, "memory.memsw.limit_in_bytes", bytes);
  // Buffers of TCP are the only ones that have a count of their own; at its limit they grow no further.
  (void)write(Controller::memory, "memory.kmem.tcp.limit_in_bytes",
              std::to_string(limits_.memory.count / kTcpShare));
  PRIMS_RETURN_ON_ERROR(
      write(Controller::pids, "pids.max", std::to_string(limits_.processes + kOwnProcesses)));
  if (limits_.cpus == 0 || limits_.cpus >= std::thread::hardware_concurrency()) return {};
  return write(Controller::cpu, "cpu.cfs_quota_us", std::to_string(limits_.cpus * kCpuPeriod));
}

Result<> Cgroup1Directories::open_files() {
  PRIMS_ASSIGN_OR_RETURN(oom_control_, open(Controller::memory, "memory.oom_control", O_RDONLY));
  PRIMS_ASSIGN_OR_RETURN(memory_peak_, open(Controller::memory, "memory.max_usage_in_bytes", O_RDWR));
  PRIMS_ASSIGN_OR_RETURN(cpu_usage_, open(Controller::cpuacct, "cpuacct.usage", O_RDWR));
  PRIMS_ASSIGN_OR_RETURN(process_events_, open(Controller::pids, "pids.events", O_RDONLY));
  auto peak = open(Controller::pids, "pids.peak", O_RDONLY);
  if (!peak) peak = open(Controller::pids, "pids.current", O_RDONLY);
  PRIMS_ASSIGN_OR_RETURN(process_peak_, std::move(peak));
  for (const ServerCgroup& server : hierarchies_->all()) {
    // A task that moves itself by `tasks` needs no lock that waits for all processors.
    UniqueFd entry(::openat(server.directory(), (name_ + "/tasks").c_str(), O_WRONLY | O_CLOEXEC));
    if (!entry) return fail_errno("open tasks of " + name_);
    entry_numbers_.push_back(entry.get());
    entries_.push_back(std::move(entry));
  }
  return {};
}

Result<> Cgroup1Directories::add(pid_t pid) {
  const std::string text = std::to_string(pid);
  for (const ServerCgroup& server : hierarchies_->all()) {
    PRIMS_RETURN_ON_ERROR(write_control(server.directory(), name_ + "/cgroup.procs", text));
  }
  return {};
}

std::vector<pid_t> Cgroup1Directories::processes() const {
  return processes_in(*hierarchies_, name_);
}

std::function<std::vector<pid_t>()> Cgroup1Directories::lister() const {
  return [hierarchies = hierarchies_, name = name_] { return processes_in(*hierarchies, name); };
}

Milliseconds Cgroup1Directories::cpu_time() const {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::nanoseconds(number_in(cpu_usage_)));
}

Bytes Cgroup1Directories::peak_memory() const {
  return Bytes{number_in(memory_peak_)};
}

std::uint32_t Cgroup1Directories::peak_processes() const {
  return static_cast<std::uint32_t>(number_in(process_peak_));
}

bool Cgroup1Directories::ran_out_of_memory() const {
  return number_after(Content(oom_control_).text(), "oom_kill ") > 0;
}

bool Cgroup1Directories::refused_a_process() const {
  return number_after(Content(process_events_).text(), "max ") > 0;
}

void Cgroup1Directories::kill() {
  killed_ = true;
  (void)write(Controller::pids, "pids.max", "0");
  for (int pass = 0; pass < 3; ++pass) {
    for (const pid_t pid : processes()) ::kill(pid, SIGKILL);
  }
}

bool Cgroup1Directories::renew() {
  if (killed_ || ran_out_of_memory() || refused_a_process() || peak_processes() > kSmallestPeak) return false;
  const int memory = hierarchies_->directory(Controller::memory);
  const auto used = read_control(memory, name_ + "/memory.usage_in_bytes");
  if (!used || Bytes{first_number(*used)} > kResidue) return false;
  return ::pwrite(memory_peak_.get(), "0", 1, 0) == 1 && ::pwrite(cpu_usage_.get(), "0", 1, 0) == 1;
}

bool Cgroup1Directories::remove() const {
  bool gone = true;
  for (const ServerCgroup& server : hierarchies_->all()) {
    gone &= ::unlinkat(server.directory(), name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
  }
  return gone;
}

// --- SpareDirectories
// ----------------------------------------------------------------------------------------------------------

std::unique_ptr<Cgroup1Directories> SpareDirectories::take(const Limits& limits) {
  const std::scoped_lock lock(mutex_);
  const auto fits = [&](const auto& directories) { return directories->has_limits(limits); };
  const auto found = std::ranges::find_if(waiting_, fits);
  if (found == waiting_.end()) return nullptr;
  std::unique_ptr<Cgroup1Directories> taken = std::move(*found);
  waiting_.erase(found);
  return taken;
}

std::unique_ptr<Cgroup1Directories> SpareDirectories::take_back(const Cgroup1Directories* directories) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(waiting_, directories, [](const auto& each) { return each.get(); });
  if (found == waiting_.end()) return nullptr;
  std::unique_ptr<Cgroup1Directories> taken = std::move(*found);
  waiting_.erase(found);
  return taken;
}

bool SpareDirectories::put(std::unique_ptr<Cgroup1Directories>& directories) {
  const std::scoped_lock lock(mutex_);
  if (waiting_.size() == kMostSpares) return false;
  waiting_.push_back(std::move(directories));
  return true;
}

}  // namespace prims::sandbox

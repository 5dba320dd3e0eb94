// What bounds a sandbox from outside: memory, processes, CPU time and workspace bytes of all its processes
// together.
//
// A backend is chosen once by trying: cgroup v1 as root, else rlimits with a watchdog. Both stand behind one
// interface, so that a caller never asks which one it has; `enforcement()` and docs/limits.md tell a person.
// Rlimits apply with every backend, as a second layer: `rlimits()` gives them as data and the launcher sets
// them.
//
// One thread (the loop's) uses these classes. Nothing here blocks: removal, directory walks and reading of
// processes happen on a background thread of the backend.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "sandbox/directory_watch.h"
#include "sandbox/outcome.h"
#include "sandbox/rlimits.h"
#include "sandbox/spec.h"

namespace prims::sandbox {

/// The limits of one sandbox. Made before its first process; destroying it kills what is left and removes the
/// group, on the backend's thread. Must not outlive its backend.
class LimitGroup {
 public:
  virtual ~LimitGroup() = default;

  /// Puts a process and all its future children under the limits. Call it for the sandbox's first process
  /// while that waits on a barrier.
  virtual Result<> add(pid_t pid) = 0;

  /// Descriptors to which a fresh single-threaded child may write "0" to join by itself, in place of add():
  /// microseconds where a move from outside waits for the kernel's grace period. Owned by the group,
  /// close-on-exec. Empty: only add().
  virtual std::span<const int> entries() const { return {}; }

  /// The limit that was crossed, with evidence: OutOfMemory, CpuTimeExceeded or DiskLimit. Polled about every
  /// 50 ms, and once more after the program ended: what took too much memory may have been killed already, by
  /// the kernel or by a watchdog.
  virtual std::optional<Outcome> breached() = 0;

  /// Set when a process or thread was refused. That alone ends nothing: the caller makes it the outcome when
  /// the program did not end well.
  virtual std::optional<ProcessLimit> process_limit_hit() = 0;

  /// What init counted when the program ended, for a backend that samples and may have missed it.
  virtual void saw_threads(std::uint32_t) {}

  virtual Usage usage() = 0;

  /// Kills every process of the group; the pid namespace's end is the ordinary way.
  virtual void kill_all() = 0;

  /// Counts the bytes below the directory from now on; more than its limit is a DiskLimit. Walks lag behind
  /// what is written, see directory_watch.h.
  virtual Result<> watch_directory(WatchedDirectory directory) = 0;

  /// Measures those directories for the last time, after the last process. The descriptor becomes readable
  /// when it is done; there is none when nothing is watched.
  virtual UniqueFd close_directories() = 0;
};

class LimitBackend {
 public:
  virtual ~LimitBackend() = default;

  /// `name` is a file name that this process has not used before.
  virtual Result<std::unique_ptr<LimitGroup>> make_group(std::string_view name, const Limits& limits) = 0;

  virtual Enforcement enforcement() const = 0;

  /// Per-process limits for the launcher to set, as this backend needs them.
  virtual std::vector<Rlimit> rlimits(const Limits& limits) const = 0;

  /// Whether memory that no process maps (memfd, System V segments) counts. Where not, the seccomp filter
  /// refuses to make it: compile_seccomp(MemoryFiles::refused).
  virtual bool counts_unmapped_memory() const = 0;
};

/// The strongest backend that works here, found by making and removing a group.
std::unique_ptr<LimitBackend> make_limit_backend();

}  // namespace prims::sandbox

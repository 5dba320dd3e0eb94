#include "session/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "session/file_lock.h"
#include "session/remove_tree.h"

namespace prims::session {
namespace {

constexpr const char* kHowToMove =
    "set --state-dir, PRIMS_STATE_DIR or state_dir in prims.toml to a directory that this user can write";

constexpr const char* kGuardName = "state";  // below locks/
constexpr const char* kLockName = "lock";    // in each process's directory below runs/

Result<> make_directory(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::create_directories(path.parent_path(), code);
  if (code) return fail_errno(fmt::format("create {}", path.parent_path().string()), code.value());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(fmt::format("create {}", path.string()));
  return {};
}

// Others must not be able to plant anything here: what lies in it is executed and mounted.
Result<> check_owner(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return fail_errno(path.string());
  if (!S_ISDIR(info.st_mode)) return fail(Kind::denied, fmt::format("{} is not a directory", path.string()));
  if (info.st_uid != ::geteuid()) {
    return fail(Kind::denied, fmt::format("{} belongs to another user (uid {})", path.string(), info.st_uid));
  }
  if ((info.st_mode & 0022U) != 0) {
    return fail(Kind::denied,
                fmt::format("{0} can be written by others (run: chmod go-w {0})", path.string()));
  }
  return {};
}

Result<> write_whole(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path fresh = file.string() + ".new";
  const UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(fmt::format("create {}", fresh.string()));
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail_errno(fmt::format("write {}", fresh.string()));
  }
  if (::rename(fresh.c_str(), file.c_str()) != 0) return fail_errno(fmt::format("create {}", file.string()));
  return {};
}

std::vector<std::filesystem::path> children(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(directory, code))
    found.push_back(entry.path());
  return found;
}

void remove_children(const std::filesystem::path& directory) {
  for (const std::filesystem::path& entry : children(directory)) {
    if (entry.filename() == kLockName) continue;
    if (const auto removed = remove_tree(entry); !removed) log::warning("{}", removed.error().message);
  }
}

// With the guard held: a directory without a lock file was cut off between its creation and its lock, or at
// its end.
bool is_abandoned(const std::filesystem::path& runs) {
  std::error_code code;
  if (!std::filesystem::exists(runs / kLockName, code)) return !code;
  const auto lock = try_lock_file(runs / kLockName);
  return lock && lock->has_value();
}

}  // namespace

std::filesystem::path default_state_directory(const Lookup& environment) {
  // The XDG specification tells to ignore a relative path.
  if (const auto base = environment("XDG_STATE_HOME"); base && base->starts_with('/')) {
    return std::filesystem::path(*base) / "prims";
  }
  if (const auto home = environment("HOME"); home && home->starts_with('/')) {
    return std::filesystem::path(*home) / ".local/state/prims";
  }
  return "/var/lib/prims";
}

State::State(std::filesystem::path directory) : directory_(std::filesystem::absolute(directory)) {}

State::~State() {
  if (own_runs_.empty()) return;
  // The lock goes last: as long as it is held, no sweep of another process interferes.
  remove_children(own_runs_);
  ::unlink((own_runs_ / kLockName).c_str());
  ::rmdir(own_runs_.c_str());
}

Result<> State::prepare() {
  if (own_lock_) return {};
  if (const auto made = create_directories(); !made) return explain(made.error());
  // One process at a time from here: creation, the version check and sweeps must not interleave.
  const auto guard = lock_file(locks() / kGuardName);
  if (!guard) return explain(guard.error());
  PRIMS_RETURN_ON_ERROR(check_version());
  if (const auto claimed = claim_runs(); !claimed) return explain(claimed.error());
  return {};
}

Result<> State::create_directories() {
  PRIMS_RETURN_ON_ERROR(make_directory(directory_));
  PRIMS_RETURN_ON_ERROR(check_owner(directory_));
  std::error_code code;
  directory_ = std::filesystem::canonical(directory_, code);
  if (code) return fail_errno(directory_.string(), code.value());
  for (const char* name : {"tools", "layers", "locks", "runs"}) {
    PRIMS_RETURN_ON_ERROR(make_directory(directory_ / name));
  }
  return {};
}

Result<> State::check_version() const {
  const std::filesystem::path file = directory_ / "version";
  std::ifstream in(file);
  std::string text;
  if (!in || !std::getline(in, text)) {
    if (const auto written = write_whole(file, fmt::format("{}\n", kVersion)); !written)
      return explain(written.error());
    return {};
  }
  int found = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
  if (error != std::errc{} || end != text.data() + text.size() || found < 1) {
    return fail(Kind::denied,
                fmt::format("{} does not hold a version number; {}", file.string(), kHowToMove));
  }
  if (found > kVersion) {
    return fail(
        Kind::denied,
        fmt::format("the state directory {} has format {}, made by a newer prims; this one knows up to "
                    "{}. Update this prims, or {}",
                    directory_.string(), found, kVersion, kHowToMove));
  }
  return {};
}

// While this lock is held, nobody sweeps the directory; the kernel gives it up when the process dies.
Result<> State::claim_runs() {
  const std::filesystem::path mine = directory_ / "runs" / random_token();
  PRIMS_RETURN_ON_ERROR(make_directory(mine));
  PRIMS_ASSIGN_OR_RETURN(own_lock_, lock_file(mine / kLockName));
  own_runs_ = mine;
  return {};
}

void State::sweep() const {
  {
    // Dead directories move below our own one: from there, they are ours to remove without holding up other
    // processes.
    const auto guard = lock_file(locks() / kGuardName);
    if (!guard) return log::warning("{}", guard.error().message);
    for (const std::filesystem::path& entry : children(directory_ / "runs")) {
      if (entry == own_runs_ || !is_abandoned(entry)) continue;
      ::rename(entry.c_str(), (own_runs_ / fmt::format("dead-{}", entry.filename().string())).c_str());
    }
  }
  for (const std::filesystem::path& entry : children(own_runs_)) {
    if (!entry.filename().string().starts_with("dead-")) continue;
    if (const auto removed = remove_tree(entry); !removed) log::warning("{}", removed.error().message);
  }
}

std::unexpected<Error> State::explain(const Error& error) const {
  return fail(error.kind, fmt::format("the state directory {} cannot be used: {}; {}", directory_.string(),
                                      error.message, kHowToMove));
}

}  // namespace prims::session

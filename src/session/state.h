// The state directory: everything that outlives one call. Several processes may use one at the same time.
//
//   version   the format; a newer one is refused
//   tools/    pinned helper programs      layers/  package layers
//   locks/    lock files                  runs/    throw-away workspaces, one directory for each living
//   process
//
// Constructing a State touches nothing: the first prepare() creates and checks.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::session {

/// Reads an environment variable; an unset one is nothing.
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

/// $XDG_STATE_HOME/prims, else $HOME/.local/state/prims, else /var/lib/prims.
std::filesystem::path default_state_directory(const Lookup& environment);

class State {
 public:
  static constexpr int kVersion = 1;

  explicit State(std::filesystem::path directory);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// Removes this process's directory below runs/.
  ~State();

  /// Creates what is missing and refuses a newer format. Quick. Done once; after a failure the next call
  /// tries again. An Error names the path and the setting.
  Result<> prepare();

  /// Removes what dead processes left below runs/. After prepare(), on a worker: the trees are of any size.
  void sweep() const;

  /// Absolute and free of links after prepare().
  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path tools() const { return directory_ / "tools"; }
  std::filesystem::path layers() const { return directory_ / "layers"; }
  std::filesystem::path locks() const { return directory_ / "locks"; }
  /// Where this process keeps its runs; valid after prepare().
  const std::filesystem::path& own_runs() const { return own_runs_; }

 private:
  Result<> create_directories();
  Result<> check_version() const;
  Result<> claim_runs();
  std::unexpected<Error> explain(const Error& error) const;

  std::filesystem::path directory_;
  std::filesystem::path own_runs_;
  UniqueFd own_lock_;
};

}  // namespace prims::session

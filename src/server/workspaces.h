// Throw-away workspaces, some of them made before a call needs one.
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>

#include "io/scope.h"
#include "io/workers.h"
#include "python/runner.h"
#include "session/state.h"
#include "session/workspace.h"

namespace prims::server {

/// Everything that it refers to outlives it and its Tasks.
class Workspaces {
 public:
  struct Options {
    uid_t owner = 0;        ///< of their files
    std::size_t ahead = 0;  ///< made ahead; as many more may wait once they have been used and left untouched
  };

  Workspaces(const session::State& state, Options options, io::Workers& workers, io::TaskScope& background);
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  /// When its last keeper goes it is removed in the background, or waits for another call if it is untouched.
  io::Task<Result<python::Workspace>> take();

 private:
  io::Task<Result<std::unique_ptr<session::Workspace>>> take_one();
  void give_back(std::unique_ptr<session::Workspace> workspace, Clock::time_point since);
  void refill();
  static io::Task<> make_ahead(Workspaces* self);
  static io::Task<> remove(Workspaces* self, std::unique_ptr<session::Workspace> workspace);

  const session::State& state_;
  const Options options_;
  io::Workers& workers_;
  io::TaskScope& background_;
  std::deque<std::unique_ptr<session::Workspace>> ready_;
  bool refilling_ = false;
};

}  // namespace prims::server

#include "server/workspaces.h"

#include <unistd.h>

#include <utility>

#include "base/log.h"

namespace prims::server {

Workspaces::Workspaces(const session::State& state, Options options, io::Workers& workers,
                       io::TaskScope& background)
    : state_(state), options_(options), workers_(workers), background_(background) {}

io::Task<Result<python::Workspace>> Workspaces::take() {
  auto taken = co_await take_one();
  PRIMS_CO_ASSIGN_OR_RETURN(std::unique_ptr<session::Workspace> workspace, std::move(taken));
  python::Workspace given{workspace->directory().string(), workspace->made(), nullptr};
  const auto give = [this, since = Clock::now()](session::Workspace* returned) {
    give_back(std::unique_ptr<session::Workspace>(returned), since);
  };
  given.keeper = std::shared_ptr<session::Workspace>(workspace.release(), give);
  co_return given;
}

io::Task<Result<std::unique_ptr<session::Workspace>>> Workspaces::take_one() {
  std::unique_ptr<session::Workspace> ready;
  while (!ready && !ready_.empty()) {
    ready = std::move(ready_.front());
    ready_.pop_front();
    // Somebody may have tidied up the state directory meanwhile.
    if (::access(ready->directory().c_str(), F_OK) != 0) ready.reset();
  }
  refill();
  if (ready) co_return ready;
  auto create = [this] { return session::Workspace::create(state_, options_.owner); };
  co_return co_await workers_.run(std::move(create));
}

void Workspaces::refill() {
  if (refilling_ || ready_.size() >= options_.ahead) return;
  refilling_ = true;
  background_.spawn(make_ahead(this), "make workspaces ahead");
}

io::Task<> Workspaces::make_ahead(Workspaces* self) {
  while (self->ready_.size() < self->options_.ahead) {
    auto create = [self] { return session::Workspace::create(self->state_, self->options_.owner); };
    auto made = co_await self->workers_.run(std::move(create));
    if (!made) break;
    self->ready_.push_back(*std::move(made));
  }
  self->refilling_ = false;
}

/// One that nothing has happened in is as good as a new one.
void Workspaces::give_back(std::unique_ptr<session::Workspace> workspace, Clock::time_point since) {
  const bool room = ready_.size() < 2 * options_.ahead;
  if (room && workspace->made()->untouched_since(since)) return ready_.push_back(std::move(workspace));
  background_.spawn(remove(this, std::move(workspace)), "remove a workspace");
}

io::Task<> Workspaces::remove(Workspaces* self, std::unique_ptr<session::Workspace> workspace) {
  auto removed = co_await workspace->remove(&self->workers_);
  if (!removed) log::warning("a workspace could not be removed: {}", removed.error().message);
}

}  // namespace prims::server

#include "session/workspace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "session/remove_tree.h"

namespace prims::session {
namespace {

Result<> make_owned(const std::filesystem::path& path, uid_t owner) {
  const auto failed = [&] { return fail_errno(fmt::format("create {}", path.string())); };
  if (::mkdir(path.c_str(), 0700) != 0) return failed();
  if (owner == ::geteuid()) return {};
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || ::fchown(fd.get(), owner, owner) != 0) return failed();
  return {};
}

}  // namespace

Result<std::unique_ptr<Workspace>> Workspace::create(const State& state, uid_t owner) {
  std::unique_ptr<Workspace> made(new Workspace(state.own_runs() / random_token()));
  PRIMS_RETURN_ON_ERROR(make_owned(made->directory_, owner));
  PRIMS_RETURN_ON_ERROR(make_owned(made->directory_ / kOutput, owner));
  PRIMS_RETURN_ON_ERROR(make_owned(made->directory_ / kMounts, owner));
  PRIMS_ASSIGN_OR_RETURN(EmptyTree tree,
                         EmptyTree::of({made->directory_, made->output(), made->directory_ / kMounts}));
  made->made_ = std::make_shared<const EmptyTree>(std::move(tree));
  return made;
}

Workspace::~Workspace() {
  if (removed_) return;
  if (const auto removed = remove_tree(directory_); !removed) log::warning("{}", removed.error().message);
}

io::Task<Result<>> Workspace::remove(io::Workers* workers) {
  auto job = [tree = directory_]() -> Result<> { return remove_tree(tree); };
  auto removed = co_await workers->run(std::move(job));
  removed_ = removed.has_value();
  co_return removed;
}

}  // namespace prims::session

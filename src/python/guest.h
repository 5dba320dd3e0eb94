// A CPython in a sandbox of its own that waits for its one call, and the ways to get one.
#pragma once

#include <memory>
#include <vector>

#include "io/task.h"
#include "layers/store.h"
#include "python/conversation.h"
#include "python/runner.h"
#include "sandbox/sandbox.h"

namespace prims::python {

/// For what is left in the pipes once every process is gone.
inline constexpr Milliseconds kDrainTime{200};

/// Whoever holds one ends it: finish() of the sandbox, then of the conversation, before it goes.
struct Guest {
  Workspace workspace;  ///< the one it came up with
  std::unique_ptr<sandbox::Sandbox> sandbox;
  std::shared_ptr<Conversation> conversation;  ///< shared with its own Tasks
};

/// A guest on the way to its call, and how it came about.
struct Arrival {
  Guest guest;
  Workspace workspace;  ///< of the call
  Path path = Path::plain;
};

/// Brings up the interpreter in a prepared sandbox, until it waits. False: it did not get there, and the
/// outcome says why.
io::Task<Result<bool>> start_guest(const Guest* guest, std::vector<sandbox::Attachment> attachments,
                                   sandbox::StartSpec spec, StreamOptions streams);

/// A guest that waits, in this workspace. Another one may be attached over it.
io::Task<Result<Guest>> fork_guest(std::shared_ptr<sandbox::Template> from, Workspace workspace);

/// For a guest that gets no call. `lease` is held until every process is gone.
io::Task<> end_guest(Guest guest, layers::Lease lease);

}  // namespace prims::python

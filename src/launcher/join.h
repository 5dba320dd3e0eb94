// How a template program sends a fork of itself into a sandbox that its stage has made (stage.h).
//
// This runs inside the template program: no allocation, no exceptions, plain system calls but for fork()
// itself, so that a library's at-fork handlers run.
#pragma once

#include <sys/types.h>

#include "launcher/channel.h"
#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

enum class Side { parent, child };

/// Takes part in what goes on around a fork; each may be null. Called in this process, the last one in the
/// child once it is fully locked down.
struct ForkHooks {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};

/// Tells the server that the program waits, then serves its requests on `socket`. Returns only in a fork,
/// which is in its sandbox then, fully locked down by `spec`, with the descriptors of the request from 0 on
/// and no others. Ends the process when the server is gone or asks for nonsense.
void serve_forks(int socket, const wire::Spec& spec, const ForkHooks& hooks);

}  // namespace prims::launcher

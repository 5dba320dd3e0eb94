// The first process of a sandbox, from its birth in new namespaces until it becomes init.
#pragma once

#include "launcher/build_root.h"
#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

struct FirstProcess {
  const wire::Spec& spec;
  const Trees& trees;
  int barrier = -1;  ///< end of file or one byte: id maps are written and limits hold
  int program = -1;  ///< this program, to be executed again as init
};

/// Executes `program` as init, with an empty environment, the Spec and the socket at kInitFd and nothing else
/// of this process. Only returns with a failure.
Failure execute_init(int program);

/// Only returns with a failure.
Failure become_init(const FirstProcess& self);

}  // namespace prims::launcher

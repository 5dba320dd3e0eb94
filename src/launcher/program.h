// The program of a start message: read once, become once.
#pragma once

#include <sys/types.h>

#include "launcher/channel.h"
#include "launcher/descriptors.h"
#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

struct Program {
  const char* directory = nullptr;
  char* arguments[wire::kMaxStrings + 1] = {};
  char* environment[wire::kMaxStrings + 1] = {};
  Descriptors descriptors;
};

/// `request` stands behind the wire::Request of a start message. What is read points into the message;
/// the descriptors are copies.
Failure read_program(wire::Reader& request, const Message& message, Program& program);

/// New session, working directory, open signals, exec. Only returns with a failure.
Failure become(const Program& program);

/// For init, which is locked down already: the program is a child that inherits that. The descriptors of the
/// message are closed. `pid` receives the program's.
Failure start_program(wire::Reader& request, const Message& message, pid_t& pid);

}  // namespace prims::launcher

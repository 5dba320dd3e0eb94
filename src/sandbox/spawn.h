// Starting the launcher program from the memory of this one.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::sandbox {

/// A sealed memory file with `content`: nobody can change it any more.
enum class MemoryFileUse { data, program };
Result<UniqueFd> make_memory_file(const char* name, std::string_view content, MemoryFileUse use);

struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};
/// Two connected SOCK_SEQPACKET sockets.
Result<SocketPair> make_sockets();

struct Launched {
  UniqueFd spec;  ///< the memory file
  pid_t pid = -1;
  UniqueFd pidfd;
  UniqueFd control;  ///< our end of the launcher's socket
  UniqueFd init;     ///< our end of init's socket
};

/// Executes `program` as the launcher with the Spec and the entries of a LimitGroup, an empty environment, no
/// other descriptors, and all signals at their defaults. It dies with the thread that calls this.
Result<Launched> spawn_launcher(int program, std::string_view spec, std::span<const int> entries);

}  // namespace prims::sandbox

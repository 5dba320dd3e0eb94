// The standard root of a sandbox: the host's /usr read-only, an /etc that says nothing about the host, and
// bounded memory where programs write. Callers add interpreters, the guest driver and mount points of their
// own.
#pragma once

#include <string>

#include "sandbox/spec.h"

namespace prims::sandbox {

inline constexpr const char* kHome = "/sandbox/home";
inline constexpr const char* kUserName = "user";

struct RootSizes {
  Bytes tmp = mib(512);
  Bytes shared_memory = mib(256);
  Bytes home = mib(256);
  Bytes run = mib(64);
};

/// Mount points for attachments in it: /sandbox/data (writable) and /env.
Root minimal_root(const std::string& hostname = "sandbox", const RootSizes& sizes = {});

}  // namespace prims::sandbox

// Everything that a process gives up before it runs code of others. None of it can be taken back.
#pragma once

#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

/// Resource limits, no capabilities in any set, none to be gained by exec, a umask as scripts expect it.
Failure drop_privileges(const wire::Spec& spec);

/// Landlock by the best ABI of this kernel, with its scopes. Rules name directories as they are mounted now;
/// what is mounted later below one of them falls under its rule.
Failure restrict_files(const wire::Spec& spec);

/// The last step: the seccomp filter of the Spec.
Failure filter_system_calls(const wire::Spec& spec);

}  // namespace prims::launcher

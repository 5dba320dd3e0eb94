// Everything that a process gives up before it runs code of others. None of it can be taken back.
#pragma once

#include <string_view>

#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

/// Resource limits, no capabilities in any set, none to be gained by exec, a umask as scripts expect it.
/// A template program is spared the limit of processes: those of its forks' sandboxes count for it as well.
enum class Whose { guest, template_program };
Failure drop_privileges(const wire::Spec& spec, Whose whose = Whose::guest);

/// Landlock by the best ABI of this kernel, with its scopes. Rules name directories as they are mounted now;
/// what is mounted later below one of them falls under its rule.
/// `signals`: whether signals to processes outside of this domain are refused as well.
enum class SignalScope { own_domain, open };
Failure restrict_files(const wire::Spec& spec, SignalScope signals = SignalScope::own_domain);

/// The last step: a seccomp filter of the Spec.
Failure filter_system_calls(std::string_view filter);

}  // namespace prims::launcher

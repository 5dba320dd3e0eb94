// Turns what a caller describes (spec.h) into what the launcher interprets (launcher/wire.h). Pure but for
// looking at the kinds of bind sources.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/wire.h"
#include "sandbox/rlimits.h"
#include "sandbox/spec.h"

namespace prims::sandbox {

/// An entry of /proc that is covered inside.
struct ProcMask {
  std::string path;
  bool directory = false;
};

/// What the host adds to a PrepareSpec.
struct HostPart {
  launcher::wire::Settings settings;
  std::vector<ProcMask> masks;
  std::vector<Rlimit> rlimits;
  std::vector<std::uint8_t> filter;                ///< of seccomp_policy.h
  std::vector<launcher::wire::Slot> slots = {};    ///< of a stage, as root
  std::vector<std::uint8_t> template_filter = {};  ///< of a stage
  std::vector<std::uint8_t> fork_filter = {};      ///< of a stage
};

/// Everything in /proc of this kernel that is not on the short list of what programs need. What a later
/// kernel adds is covered without being known.
std::vector<ProcMask> proc_masks();

Result<std::string> encode_spec(const PrepareSpec& spec, const HostPart& host);

/// Messages for launcher and init. Descriptors of a StartSpec travel beside its message in the order 0, 1, 2,
/// extra.
Result<std::string> encode_attach(const std::vector<Attachment>& attachments, std::uint32_t slot = 0);
Result<std::string> encode_start(const StartSpec& spec);
std::string encode_join(const ForkSpec& spec, std::size_t entries);
std::string encode_request(launcher::wire::RequestKind kind, std::uint32_t value = 0);

}  // namespace prims::sandbox

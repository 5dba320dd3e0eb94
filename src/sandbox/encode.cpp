#include "sandbox/encode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "launcher/wire_writer.h"
#include "sandbox/tree_plan.h"

namespace prims::sandbox {
namespace {

namespace wire = launcher::wire;

/// What programs read in /proc beside their own processes.
constexpr std::array<std::string_view, 12> kShownInProc = {"cpuinfo", "filesystems", "loadavg", "meminfo",
                                                           "mounts",  "net",         "self",    "stat",
                                                           "sys",     "sysvipc",     "uptime",  "version"};

/// Files deeper down that identify the host.
constexpr std::array<std::string_view, 1> kMaskedDeeper = {"/proc/sys/kernel/random/boot_id"};

/// Writes the lists of trees and steps side by side: a bind step names its tree by number.
class TreeEncoder {
 public:
  explicit TreeEncoder(const TreePlan& plan) : plan_(plan) {}

  Result<> encode() {
    for (const auto& [path, node] : plan_) {
      path_ = path;
      below_bind_ = !bind_.empty() && path.starts_with(bind_ + "/");
      std::visit([this](const auto& item) { write(item); }, node);
    }
    if (tree_count_ <= wire::kMaxTrees) return {};
    return fail(Kind::invalid_input, fmt::format("a root has at most {} binds", wire::kMaxTrees));
  }

  std::string trees() { return trees_.take(); }
  std::string steps() { return steps_.take(); }

 private:
  wire::Writer& step(wire::Operation operation) { return steps_.value(operation).text(path_); }

  void write(const DirectoryNode& node) {
    if (!below_bind_) step(wire::Operation::directory).value<std::uint32_t>(node.mode);
  }
  void write(const FileNode& node) {
    step(wire::Operation::file).value<std::uint32_t>(node.mode).bytes(node.content);
  }
  void write(const SymlinkNode& node) { step(wire::Operation::symlink).text(node.target); }
  void write(const TmpfsNode& node) {
    write(DirectoryNode{});
    step(wire::Operation::tmpfs).value<std::uint32_t>(node.mount.mode);
    steps_.value<std::uint64_t>(node.mount.size.count).value<std::uint64_t>(node.mount.inodes);
  }
  void write(const BindNode& node) {
    if (!below_bind_) node.directory ? write(DirectoryNode{}) : write(FileNode{});
    std::uint32_t flags = wire::kTreeRecursive;
    if (node.access == Access::read_only) flags |= wire::kTreeReadOnly;
    if (node.device) flags |= wire::kTreeDevice;
    trees_.text(node.source).value(flags);
    step(wire::Operation::bind).value(tree_count_++);
    if (!below_bind_ && node.directory) bind_ = path_;
  }

  const TreePlan& plan_;
  std::string path_;
  std::string bind_;  // the bind that paths may lie below
  bool below_bind_ = false;
  std::uint32_t tree_count_ = 0;
  wire::Writer trees_;
  wire::Writer steps_;
};

std::string encode_masks(const std::vector<ProcMask>& masks) {
  wire::Writer writer;
  for (const ProcMask& mask : masks) writer.text(mask.path).value<std::uint32_t>(mask.directory ? 1 : 0);
  return writer.take();
}

std::string encode_limits(const std::vector<Rlimit>& limits) {
  wire::Writer writer;
  for (const Rlimit& limit : limits) {
    writer.value(static_cast<std::uint32_t>(limit.resource)).value(limit.soft).value(limit.hard);
  }
  return writer.take();
}

/// Reading everywhere, writing only where something writable is or will be mounted.
std::string encode_rules(const Root& root) {
  wire::Writer writer;
  writer.text("/").value(wire::Rights::read);
  writer.text("/dev").value(wire::Rights::device);
  for (const TmpfsMount& mount : root.tmpfs) writer.text(mount.path).value(wire::Rights::write);
  for (const std::string& parent : root.writable_parents) writer.text(parent).value(wire::Rights::write);
  return writer.take();
}

std::string encode_slots(const std::vector<wire::Slot>& slots) {
  wire::Writer writer;
  for (const wire::Slot& slot : slots) writer.value(slot.uid).value(slot.gid);
  return writer.take();
}

/// Which of the standard descriptors do not come along, as bits.
template <class Spec>
std::uint32_t missing_descriptors(const Spec& spec) {
  return (spec.standard_input ? 0U : 1U) | (spec.standard_output ? 0U : 2U) | (spec.standard_error ? 0U : 4U);
}

}  // namespace

std::vector<ProcMask> proc_masks() {
  std::vector<ProcMask> masks;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    const bool process = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (process || entry.is_symlink(error) || std::ranges::find(kShownInProc, name) != kShownInProc.end())
      continue;
    masks.push_back({entry.path(), entry.is_directory(error)});
  }
  for (const std::string_view path : kMaskedDeeper) masks.push_back({std::string(path), false});
  return masks;
}

Result<std::string> encode_spec(const PrepareSpec& spec, const HostPart& host) {
  if (spec.hostname.size() > 64) return fail(Kind::invalid_input, "a host name has at most 64 characters");
  PRIMS_ASSIGN_OR_RETURN(const TreePlan plan, plan_tree(spec.root));
  TreeEncoder tree(plan);
  PRIMS_RETURN_ON_ERROR(tree.encode());

  wire::Writer body;
  body.value(host.settings).text(spec.hostname);
  body.bytes(tree.trees()).bytes(tree.steps()).bytes(encode_masks(host.masks));
  body.bytes(encode_limits(host.rlimits)).bytes(encode_rules(spec.root)).bytes(encode_slots(host.slots));
  for (const auto* filter : {&host.filter, &host.template_filter, &host.fork_filter}) {
    body.bytes(std::string(filter->begin(), filter->end()));
  }

  wire::Header header;
  header.size = static_cast<std::uint32_t>(sizeof header + body.size());
  wire::Writer whole;
  whole.value(header);
  return whole.take() + body.take();
}

Result<std::string> encode_attach(const std::vector<Attachment>& attachments, std::uint32_t slot) {
  if (attachments.size() > wire::kMaxAttachments) {
    return fail(Kind::invalid_input, fmt::format("at most {} attachments", wire::kMaxAttachments));
  }
  wire::Writer writer;
  writer.value(wire::Request{wire::RequestKind::attach, slot});
  for (const Attachment& attachment : attachments) {
    const bool read_only = attachment.access == Access::read_only;
    writer.text(attachment.source).text(attachment.target);
    writer.value<std::uint32_t>(read_only ? wire::kTreeReadOnly : 0);
  }
  return writer.take();
}

Result<std::string> encode_start(const StartSpec& spec) {
  if (spec.argv.empty()) return fail(Kind::invalid_input, "no program to start");
  if (spec.argv.size() > wire::kMaxStrings || spec.environment.size() > wire::kMaxStrings ||
      spec.extra.size() > wire::kMaxDescriptors - 3) {
    return fail(Kind::invalid_input, "too many arguments, variables or descriptors");
  }
  wire::StartHeader header;
  header.missing = missing_descriptors(spec);
  header.arguments = static_cast<std::uint32_t>(spec.argv.size());
  header.variables = static_cast<std::uint32_t>(spec.environment.size());
  wire::Writer writer;
  writer.value(wire::Request{wire::RequestKind::start}).value(header).text(spec.directory);
  for (const std::string& argument : spec.argv) writer.text(argument);
  for (const std::string& variable : spec.environment) writer.text(variable);
  if (writer.size() > wire::kMaxMessage)
    return fail(Kind::invalid_input, "arguments and environment are too long");
  return writer.take();
}

std::string encode_join(const ForkSpec& spec, std::size_t entries) {
  wire::Writer writer;
  writer.value(wire::Request{wire::RequestKind::join, static_cast<std::uint32_t>(entries)});
  return writer.value(missing_descriptors(spec)).take();
}

std::string encode_request(wire::RequestKind kind, std::uint32_t value) {
  wire::Writer writer;
  writer.value(wire::Request{kind, value});
  return writer.take();
}

}  // namespace prims::sandbox

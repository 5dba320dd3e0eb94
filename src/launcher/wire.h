// The private wire format between prims and its launcher (docs/sandbox.md). Both come from one build, so
// numbers are in the machine's byte order; the version still travels, and a newer one is refused by name.
//
// Header-only and free of allocation, exceptions and the standard library's runtime: the launcher links none
// of it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace prims::launcher::wire {

inline constexpr std::uint32_t kMagic = 0x424d'5250;  // "PRMB"
inline constexpr std::uint16_t kVersion = 3;

/// Descriptors that the launcher starts with.
inline constexpr int kControlFd = 3;     ///< to the server: attachments, and the end of everything
inline constexpr int kInitFd = 4;        ///< the socket of init to the server
inline constexpr int kSpecFd = 5;        ///< the Spec, a sealed memory file
inline constexpr int kFirstEntryFd = 6;  ///< files that put their writer under the limits of this sandbox

/// Descriptors that a template program starts with: the socket on which it is asked for forks, and the Spec.
inline constexpr int kForkFd = 3;
inline constexpr int kForkSpecFd = 4;

/// argv[0] of the two roles of the one program.
inline constexpr const char* kLauncherName = "prims-launcher";
inline constexpr const char* kInitName = "prims-init";

inline constexpr std::size_t kMaxMessage = std::size_t{128} << 10;
inline constexpr std::size_t kMaxEntries = 8;
inline constexpr std::size_t kMaxTrees = 128;
inline constexpr std::size_t kMaxAttachments = 32;
inline constexpr std::size_t kMaxDescriptors = 32;
inline constexpr std::size_t kMaxStrings = 2048;
inline constexpr std::size_t kMaxSlots = 128;

// --- the Spec
// -------------------------------------------------------------------------------------------------------

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t reserved = 0;
  std::uint32_t size = 0;  ///< of everything, this header included
};

enum SpecFlags : std::uint32_t {
  kOrdinaryUser = 1,      ///< the server is not root: make an outer user namespace first
  kLoopbackBroker = 2,    ///< listen on 127.0.0.1:broker_port and pass the socket out
  kAwaitProceed = 4,      ///< the server puts the first process under limits before it goes on
  kLandlockRequired = 8,  ///< a kernel without Landlock is a failure
  kStage = 16,            ///< the first process stays a stage, which makes sandboxes (stage.h)
};

struct Settings {
  std::uint32_t flags = 0;
  std::uint32_t inside_id = 1000;  ///< uid and gid inside
  std::uint32_t outside_uid = 0;   ///< what they are on the host; never 0
  std::uint32_t outside_gid = 0;
  std::uint32_t owner_id = 0;  ///< uid and gid that own files of attachments on the host
  std::uint16_t broker_port = 0;
  std::uint16_t entries = 0;         ///< descriptors from kFirstEntryFd on
  std::uint16_t slots = 0;           ///< stage: sandboxes at once
  std::uint16_t member_entries = 0;  ///< stage: entries of each sandbox's own limits
};

enum TreeFlags : std::uint32_t {
  kTreeReadOnly = 1,
  kTreeDevice = 2,     ///< a device node: nodev would disable it
  kTreeRecursive = 4,  ///< with everything that is mounted below
  kTreeOptional = 8,   ///< left out when the source is not there
};

/// What is done, in this order of the list, on the memory file system that becomes the root. Paths are
/// absolute inside.
enum class Operation : std::uint8_t {
  directory = 1,  ///< path, mode
  file = 2,       ///< path, mode, content
  symlink = 3,    ///< path, target
  tmpfs = 4,      ///< path, mode, size, inodes
  bind = 5,       ///< path, number of the tree
};

enum class Rights : std::uint32_t { read = 1, write = 2, device = 3 };

// --- messages
// -------------------------------------------------------------------------------------------------------

enum class RequestKind : std::uint32_t {
  proceed = 1,  ///< control: the first process is under limits
  attach = 2,   ///< control: a list of source, target, TreeFlags
  start = 3,    ///< init, stage: directory, argv, environment; descriptors 0.. travel with it
  signal = 4,   ///< init, stage: `value` is the number
  make = 5,     ///< stage: a sandbox in slot `value`; the socket of its init and its entries travel with it
  join = 6,     ///< template program: fork into a sandbox; its pidfd, entries, descriptors 0.. travel with it
  adopt = 7,    ///< init of a stage's sandbox: `value` is the pid of the program, which has joined
};

struct Request {
  RequestKind kind{};
  std::uint32_t value = 0;
};

/// An attach request for one sandbox of a stage carries the pidfd of its init, and its slot in `value`.

/// start, join: this many of the descriptors 0, 1, 2 are missing, as bits. They become /dev/null.
struct StartHeader {
  std::uint32_t missing = 0;
  std::uint32_t arguments = 0;
  std::uint32_t variables = 0;
};

enum class NoticeKind : std::uint32_t {
  created = 1,   ///< control: the first process exists; `value` is its pid, its pidfd travels with it.
                 ///< stage: the same of a sandbox in slot `value`
  attached = 2,  ///< control
  ended = 3,     ///< control: every process of the sandbox is gone; `usage` covers all of them.
                 ///< stage: the same of the sandbox in slot `value`
  failed = 4,    ///< both: `step` and `error`; `value` is the attachment's number where it concerns one
  broker = 5,    ///< init: the listening socket travels with it
  ready = 6,     ///< init: locked down, waits for start; template program: waits for its first fork
  exited = 7,    ///< init: `value` is the wait status of the program, `threads` what there was at its end
  joined = 8,    ///< template program: its fork is in the sandbox; `value` is its pid there.
                 ///< init: it is the program of this sandbox now
};

struct CpuUsage {
  std::uint64_t user_us = 0;
  std::uint64_t system_us = 0;
  std::uint64_t peak_kib = 0;
};

/// Every message from the launcher and from init.
struct Notice {
  NoticeKind kind{};
  std::int32_t value = 0;
  std::int32_t error = 0;
  std::uint32_t threads = 0;  ///< of all processes of the sandbox, init and ended ones among them
  CpuUsage usage;
  char step[40] = {};  ///< a C string
};

// --- reading
// --------------------------------------------------------------------------------------------------------

/// Reads values one after the other. After the first failure everything is zero or empty and good() is false.
class Reader {
 public:
  Reader() = default;
  explicit Reader(std::string_view data) : rest_(data) {}

  template <class T>
  T value() {
    T result{};
    const std::string_view raw = take(sizeof(T));
    if (raw.size() == sizeof(T)) std::memcpy(&result, raw.data(), sizeof(T));
    return result;
  }

  /// Bytes with their length before them.
  std::string_view bytes() { return take(value<std::uint32_t>()); }

  /// The same with a NUL behind that is not counted and none inside: data() is a C string.
  std::string_view text() {
    const std::string_view raw = bytes();
    if (!good_ || raw.empty() || raw.find('\0') != raw.size() - 1) return failed();
    return raw.substr(0, raw.size() - 1);
  }

  bool good() const { return good_; }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (!good_ || size > rest_.size()) return failed();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view failed() {
    good_ = false;
    rest_ = {};
    return {};
  }

  std::string_view rest_;
  bool good_ = true;
};

/// One entry of each list in the Spec.
struct Tree {
  std::string_view source;
  std::uint32_t flags = 0;
};
struct Step {
  Operation operation{};
  std::string_view path;
  std::uint32_t mode = 0;
  std::string_view text;  ///< content or target
  std::uint64_t size = 0;
  std::uint64_t inodes = 0;
  std::uint32_t tree = 0;
};
struct Mask {
  std::string_view path;  ///< absolute inside
  std::uint32_t directory = 0;
};
struct Limit {
  std::uint32_t resource = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};
struct Rule {
  std::string_view path;
  Rights rights{};
};
/// Host uid and gid of the sandbox in one slot, as root.
struct Slot {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
struct Attach {
  std::string_view source;
  std::string_view target;
  std::uint32_t flags = 0;
};

inline bool is_absolute(std::string_view path) {
  return !path.empty() && path.front() == '/';
}

inline bool read(Reader& reader, Tree& tree) {
  tree.source = reader.text();
  tree.flags = reader.value<std::uint32_t>();
  return reader.good() && is_absolute(tree.source);
}

inline bool read(Reader& reader, Step& step) {
  step = {};
  step.operation = static_cast<Operation>(reader.value<std::uint8_t>());
  step.path = reader.text();
  switch (step.operation) {
    case Operation::directory:
      step.mode = reader.value<std::uint32_t>();
      break;
    case Operation::file:
      step.mode = reader.value<std::uint32_t>();
      step.text = reader.bytes();
      break;
    case Operation::symlink:
      step.text = reader.text();
      break;
    case Operation::tmpfs:
      step.mode = reader.value<std::uint32_t>();
      step.size = reader.value<std::uint64_t>();
      step.inodes = reader.value<std::uint64_t>();
      break;
    case Operation::bind:
      step.tree = reader.value<std::uint32_t>();
      break;
    default:
      return false;
  }
  return reader.good() && is_absolute(step.path) && step.path.size() > 1 && step.tree < kMaxTrees;
}

inline bool read(Reader& reader, Mask& mask) {
  mask.path = reader.text();
  mask.directory = reader.value<std::uint32_t>();
  return reader.good() && is_absolute(mask.path);
}

inline bool read(Reader& reader, Limit& limit) {
  limit.resource = reader.value<std::uint32_t>();
  limit.soft = reader.value<std::uint64_t>();
  limit.hard = reader.value<std::uint64_t>();
  return reader.good();
}

inline bool read(Reader& reader, Rule& rule) {
  rule.path = reader.text();
  rule.rights = static_cast<Rights>(reader.value<std::uint32_t>());
  return reader.good() && is_absolute(rule.path) && rule.rights >= Rights::read &&
         rule.rights <= Rights::device;
}

inline bool read(Reader& reader, Slot& slot) {
  slot.uid = reader.value<std::uint32_t>();
  slot.gid = reader.value<std::uint32_t>();
  return reader.good() && slot.uid != 0 && slot.gid != 0;
}

inline bool read(Reader& reader, Attach& attach) {
  attach.source = reader.text();
  attach.target = reader.text();
  attach.flags = reader.value<std::uint32_t>();
  return reader.good() && is_absolute(attach.source) && is_absolute(attach.target);
}

/// A list as it lies in the Spec. check() reads it once to the end, so that iterating later cannot fail.
template <class T>
class List {
 public:
  List() = default;
  explicit List(std::string_view raw) : raw_(raw) {}

  bool empty() const { return raw_.empty(); }

  bool check(std::size_t most) const {
    Reader reader(raw_);
    T item;
    std::size_t count = 0;
    while (!reader.done()) {
      if (++count > most || !read(reader, item)) return false;
    }
    return true;
  }

  /// Calls `use(item)` for each; ends early when that returns something that is true, and returns it.
  template <class Use>
  auto each(Use use) const {
    Reader reader(raw_);
    T item;
    while (!reader.done() && read(reader, item)) {
      if (auto stop = use(item)) return stop;
    }
    return decltype(use(item)){};
  }

 private:
  std::string_view raw_;
};

/// Views into the bytes of a Spec, which must live as long.
struct Spec {
  Settings settings;
  std::string_view hostname;
  List<Tree> trees;
  List<Step> steps;
  List<Mask> masks;
  List<Limit> limits;
  List<Rule> rules;
  List<Slot> slots;  ///< as root one for each; empty: all sandboxes have the stage's ids
  /// An array of sock_filter: of the guest and its init. A stage's: of the inits of its sandboxes.
  std::string_view filter;
  std::string_view template_filter;  ///< of a stage's template program; empty otherwise
  std::string_view fork_filter;      ///< what each fork of that adds to it

  bool has(SpecFlags flag) const { return (settings.flags & flag) != 0; }
  bool each_slot_has_its_own_ids() const { return !slots.empty(); }
};

inline bool is_filter(std::string_view raw) {
  return !raw.empty() && raw.size() % 8 == 0 && raw.size() / 8 <= 4096;
}

/// Nothing when all is well, otherwise what is wrong with it.
inline const char* decode(std::string_view raw, Spec& spec) {
  Reader reader(raw);
  const auto header = reader.value<Header>();
  if (!reader.good() || header.magic != kMagic) return "spec: not a Spec";
  if (header.version > kVersion) return "spec: version is newer than mine";
  if (header.size != raw.size()) return "spec: wrong length";
  spec.settings = reader.value<Settings>();
  spec.hostname = reader.text();
  spec.trees = List<Tree>(reader.bytes());
  spec.steps = List<Step>(reader.bytes());
  spec.masks = List<Mask>(reader.bytes());
  spec.limits = List<Limit>(reader.bytes());
  spec.rules = List<Rule>(reader.bytes());
  spec.slots = List<Slot>(reader.bytes());
  spec.filter = reader.bytes();
  spec.template_filter = reader.bytes();
  spec.fork_filter = reader.bytes();
  if (!reader.good() || !reader.done()) return "spec: truncated";
  constexpr std::size_t kMany = 100'000;
  if (!spec.trees.check(kMaxTrees)) return "spec: trees";
  if (!spec.steps.check(kMany)) return "spec: steps";
  if (!spec.masks.check(kMany)) return "spec: masks";
  if (!spec.limits.check(kMany)) return "spec: limits";
  if (!spec.rules.check(kMany)) return "spec: rules";
  if (!spec.slots.check(kMaxSlots) || spec.settings.slots > kMaxSlots) return "spec: slots";
  if (!is_filter(spec.filter)) return "spec: filter";
  if (spec.has(kStage) != is_filter(spec.template_filter)) return "spec: template filter";
  if (spec.has(kStage) != is_filter(spec.fork_filter)) return "spec: fork filter";
  if (spec.settings.outside_uid == 0 || spec.settings.outside_gid == 0)
    return "spec: maps to host uid or gid 0";
  if (spec.settings.entries > kMaxEntries || spec.settings.member_entries > kMaxEntries)
    return "spec: entries";
  return nullptr;
}

}  // namespace prims::launcher::wire

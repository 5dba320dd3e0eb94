#include "sandbox/seccomp_policy.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <ranges>

#include "sandbox/seccomp_table.h"

// libseccomp knows the numbers of every architecture, but its rules for one call cannot have an "otherwise";
// so the program is laid out here. Its shape: check the architecture, then a binary search over the call's
// number, whose leaves are a verdict or the clauses of one call. The kernel finds out by itself which numbers
// are always allowed and skips the program for those.
namespace prims::sandbox {
namespace {

#if defined(__x86_64__)
constexpr Architecture kNative = Architecture::x86_64;
#elif defined(__aarch64__)
constexpr Architecture kNative = Architecture::aarch64;
#else
#error "no system call table for this architecture"
#endif

struct Machine {
  std::uint32_t audit;
  std::uint32_t scmp;
};

Machine machine_of(Architecture architecture) {
  if (architecture == Architecture::native) architecture = kNative;
  return architecture == Architecture::x86_64 ? Machine{AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64}
                                              : Machine{AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64};
}

std::optional<std::uint32_t> number_of(std::string_view name, Machine machine) {
  const int number = seccomp_syscall_resolve_name_arch(machine.scmp, std::string(name).c_str());
  if (number < 0) return std::nullopt;  // negative numbers stand for calls of other architectures
  return static_cast<std::uint32_t>(number);
}

Verdict verdict_of(const Group& group, MemoryFiles memory_files) {
  return group.memory_files && memory_files == MemoryFiles::refused ? Verdict{ENOSYS} : group.verdict;
}

auto names_of(std::string_view names) {
  return std::views::split(names, ' ') |
         std::views::transform([](auto part) { return std::string_view(part.begin(), part.end()); });
}

/// What a call number leads to.
struct Leaf {
  std::uint32_t action = 0;  ///< SECCOMP_RET_*
  std::span<const Clause> clauses = {};

  bool same_as(const Leaf& other) const {
    return clauses.empty() && other.clauses.empty() && action == other.action;
  }
};

/// All numbers from `first` up to the next range's first.
struct Range {
  std::uint32_t first = 0;
  Leaf leaf;
};

std::uint32_t action_of(Verdict verdict) {
  if (verdict.error == 0) return SECCOMP_RET_ALLOW;
  if (verdict.error == Verdict::kNothing) return SECCOMP_RET_ERRNO;
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(verdict.error) & SECCOMP_RET_DATA);
}

using Leaves = std::map<std::uint32_t, Leaf>;

Leaves leaves_of_guests(Machine machine, MemoryFiles memory_files) {
  Leaves leaves;
  for (const Group& group : call_groups()) {
    const Leaf leaf{action_of(verdict_of(group, memory_files))};
    for (const std::string_view name : names_of(group.names)) {
      if (const auto number = number_of(name, machine)) leaves.emplace(*number, leaf);
    }
  }
  for (const Rule& rule : conditional_calls()) {
    if (const auto number = number_of(rule.name, machine)) {
      leaves.emplace(*number, Leaf{action_of(rule.otherwise), rule.clauses});
    }
  }
  return leaves;
}

Leaves leaves_for(Machine machine, MemoryFiles memory_files, Role role) {
  Leaves all = leaves_of_guests(machine, memory_files);
  if (role == Role::guest) return all;
  if (role == Role::template_program) {
    for (const std::string_view name : names_of(joining_calls())) {
      if (const auto number = number_of(name, machine)) all[*number] = Leaf{SECCOMP_RET_ALLOW};
    }
    return all;
  }
  Leaves some;
  for (const std::string_view name : names_of(role == Role::fork ? joining_calls() : init_calls())) {
    if (const auto number = number_of(name, machine)) some.emplace(*number, all.at(*number));
  }
  return some;
}

constexpr std::uint32_t kX32Bit = 0x40000000;

std::vector<Range> ranges_of(const Leaves& leaves, const Leaf& unknown, Machine machine) {
  std::vector<Range> ranges{{0, unknown}};
  const auto append = [&ranges](std::uint32_t first, const Leaf& leaf) {
    if (ranges.back().first == first) {
      ranges.back().leaf = leaf;
    } else if (!ranges.back().leaf.same_as(leaf)) {
      ranges.push_back({first, leaf});
    }
  };
  std::uint32_t next = 0;
  for (const auto& [number, leaf] : leaves) {
    if (number > next) append(next, unknown);
    append(number, leaf);
    next = number + 1;
  }
  append(next, unknown);
  if (machine.audit == AUDIT_ARCH_X86_64) {
    append(kX32Bit, Leaf{SECCOMP_RET_KILL_PROCESS});
    append(2 * kX32Bit, unknown);  // no table of any ABI reaches here
  }
  return ranges;
}

class Program {
 public:
  Program(Machine machine, std::span<const Range> ranges) {
    load(offsetof(seccomp_data, arch));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine.audit, 1, 0));
    finish(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    search(ranges);
  }

  Result<std::vector<std::uint8_t>> bytes() const {
    if (code_.size() > BPF_MAXINSNS) return fail(Kind::internal, "the seccomp program is too long");
    std::vector<std::uint8_t> raw(code_.size() * sizeof(sock_filter));
    std::memcpy(raw.data(), code_.data(), raw.size());
    return raw;
  }

 private:
  void load(std::size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }

  void finish(std::uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  // Conditional jumps reach 255 instructions, BPF_JA reaches any.
  void search(std::span<const Range> ranges) {
    if (ranges.size() == 1) return decide(ranges.front().leaf);
    const std::size_t middle = ranges.size() / 2;
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ranges[middle].first, 0, 1));
    const std::size_t jump = code_.size();
    code_.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
    search(ranges.first(middle));
    code_[jump].k = static_cast<std::uint32_t>(code_.size() - jump - 1);
    search(ranges.subspan(middle));
  }

  void decide(const Leaf& leaf) {
    for (const Clause& clause : leaf.clauses) match(clause);
    finish(leaf.action);
  }

  /// Returns the clause's verdict when all its conditions hold, else runs into what follows.
  void match(const Clause& clause) {
    std::vector<std::size_t> exits;
    for (const Condition& condition : clause.conditions) {
      if (condition.test == Test::nothing) continue;
      load(low_half(condition.argument));
      if (condition.test == Test::any_bit) {
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, condition.mask, 0, 0));
      } else {
        if (condition.mask != std::numeric_limits<std::uint32_t>::max()) {
          code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, condition.mask));
        }
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, condition.value, 0, 0));
      }
      exits.push_back(code_.size() - 1);
    }
    finish(action_of(clause.verdict));
    for (const std::size_t exit : exits) code_[exit].jf = static_cast<std::uint8_t>(code_.size() - exit - 1);
  }

  static std::size_t low_half(unsigned argument) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    return offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t);
  }

  std::vector<sock_filter> code_;
};

std::string text_of(Verdict verdict) {
  switch (verdict.error) {
    case Verdict::kNothing:
      return "nothing";
    case 0:
      return "allow";
    case EPERM:
      return "EPERM";
    case ENOSYS:
      return "ENOSYS";
    case EAFNOSUPPORT:
      return "EAFNOSUPPORT";
    case EPROTONOSUPPORT:
      return "EPROTONOSUPPORT";
    case ENOPROTOOPT:
      return "ENOPROTOOPT";
    case EOPNOTSUPP:
      return "EOPNOTSUPP";
    default:
      return fmt::format("errno {}", verdict.error);
  }
}

std::string text_of(const Condition& condition) {
  const bool whole = condition.mask == std::numeric_limits<std::uint32_t>::max();
  const std::string argument = whole ? fmt::format("a{}", condition.argument)
                                     : fmt::format("a{} & {:#x}", condition.argument, condition.mask);
  return condition.test == Test::any_bit ? argument + " != 0"
                                         : fmt::format("{} == {:#x}", argument, condition.value);
}

std::string text_of(const Clause& clause) {
  std::string text;
  for (const Condition& condition : clause.conditions) {
    if (condition.test == Test::nothing) continue;
    text += text.empty() ? "if " : " and ";
    text += text_of(condition);
  }
  return text + ": " + text_of(clause.verdict);
}

}  // namespace

Result<std::vector<std::uint8_t>> compile_seccomp(MemoryFiles memory_files, Role role,
                                                  Architecture architecture) {
  const Machine machine = machine_of(architecture);
  const Leaf unknown{role == Role::fork ? SECCOMP_RET_ALLOW : action_of(Verdict{ENOSYS})};
  const std::vector<Range> ranges = ranges_of(leaves_for(machine, memory_files, role), unknown, machine);
  return Program(machine, ranges).bytes();
}

std::string describe_seccomp() {
  std::string text;
  for (const Group& group : call_groups()) {
    text +=
        fmt::format("# {}{}\n", group.topic, group.memory_files ? " (ENOSYS where no cgroup counts it)" : "");
    for (const std::string_view name : names_of(group.names)) {
      text += fmt::format("{:<24}{}\n", name, text_of(group.verdict));
    }
  }
  text += "# by argument\n";
  for (const Rule& rule : conditional_calls()) {
    for (const Clause& clause : rule.clauses) text += fmt::format("{:<24}{}\n", rule.name, text_of(clause));
    text += fmt::format("{:<24}else: {}\n", rule.name, text_of(rule.otherwise));
  }
  return text + "# everything else: ENOSYS; calls of another ABI: the process is killed\n";
}

std::vector<std::string> unresolved_calls(Architecture architecture) {
  const Machine machine = machine_of(architecture);
  std::vector<std::string> missing;
  const auto look_up = [&](std::string_view name) {
    if (!number_of(name, machine)) missing.emplace_back(name);
  };
  for (const Group& group : call_groups()) std::ranges::for_each(names_of(group.names), look_up);
  for (const Rule& rule : conditional_calls()) look_up(rule.name);
  std::ranges::sort(missing);
  return missing;
}

}  // namespace prims::sandbox

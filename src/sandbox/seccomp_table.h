// The policy of seccomp_policy.h as data. Read seccomp_table.cpp; nothing else decides what a sandbox may
// call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace prims::sandbox {

/// What a call gets: it runs, or it fails with this errno without having run.
struct Verdict {
  static constexpr int kNothing = -1;  ///< it does nothing and says that all went well

  int error = 0;  ///< 0: it runs

  constexpr bool operator==(const Verdict&) const = default;
};

enum class Test { nothing, equals, any_bit };

/// A comparison of the low 32 bits of one argument. Every argument that the table looks at is an int or an
/// unsigned int in the kernel, which ignores the upper half as well (a filter that compares 64 bits can be
/// walked around, CVE-2019-10063).
struct Condition {
  unsigned argument = 0;
  Test test = Test::nothing;
  std::uint32_t mask = 0;
  std::uint32_t value = 0;  ///< for equals: (argument & mask) == value
};

/// The verdict when all conditions hold.
struct Clause {
  Verdict verdict;
  Condition conditions[3] = {};
};

/// System calls that get one verdict whatever their arguments are.
struct Group {
  Verdict verdict;
  std::string_view topic;
  std::string_view names;  ///< separated by one space
  /// Decided by MemoryFiles: `verdict` where memory files are allowed, else ENOSYS.
  bool memory_files = false;
};

/// A system call whose arguments count: the first clause that holds decides, else `otherwise`.
struct Rule {
  std::string_view name;
  Verdict otherwise;
  std::span<const Clause> clauses;
};

/// What is in neither of these gets ENOSYS, as from a kernel that is older than the call.
std::span<const Group> call_groups();
std::span<const Rule> conditional_calls();

/// Calls that a template program makes to bring a fork into its sandbox, and no guest.
std::string_view joining_calls();

/// All that init of a fork's sandbox calls once it is ready.
std::string_view init_calls();

}  // namespace prims::sandbox

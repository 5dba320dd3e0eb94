#include "sandbox/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace prims::sandbox {
namespace {

constexpr std::size_t kMostProcesses = 20'000;  // far above any process limit: a bound for damaged data

std::string read_file(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) return text;
  std::array<char, 4096> part;
  ssize_t count = 0;
  while ((count = ::read(file.get(), part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  return text;
}

/// Takes the next word off the front.
std::string_view next_word(std::string_view& text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return text = {};
  text.remove_prefix(begin);
  const auto end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::uint64_t to_number(std::string_view word) {
  std::uint64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

template <class Visit>
void for_each_number_in(const std::string& directory, Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (!stream) return;
  while (const dirent* entry = ::readdir(stream.get())) {
    if (const auto number = to_number(entry->d_name); number > 0) visit(static_cast<pid_t>(number));
  }
}

/// Kernels with checkpoint support (all distributions' kernels) list the children of each thread.
bool lists_children() {
  static const bool found = ::access("/proc/thread-self/children", R_OK) == 0;
  return found;
}

std::vector<pid_t> children_of(const ProcessSample& process) {
  std::vector<pid_t> children;
  for_each_number_in(fmt::format("/proc/{}/task", process.pid), [&](pid_t thread) {
    const std::string text = read_file(fmt::format("/proc/{}/task/{}/children", process.pid, thread));
    std::string_view rest = text;
    for (auto word = next_word(rest); !word.empty(); word = next_word(rest)) {
      children.push_back(static_cast<pid_t>(to_number(word)));
    }
  });
  return children;
}

std::multimap<pid_t, pid_t> parents_of_all() {
  std::multimap<pid_t, pid_t> children;
  for_each_number_in("/proc", [&](pid_t pid) {
    if (const auto sample = sample_process(pid)) children.emplace(sample->parent, pid);
  });
  return children;
}

}  // namespace

std::optional<ProcessSample> sample_process(pid_t pid) {
  const std::string text = read_file(fmt::format("/proc/{}/stat", pid));
  // The second field is the program's name in parentheses and may hold anything, parentheses too.
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(name_end + 1);
  std::array<std::string_view, 22> field;  // field[0] is number 3 of man 5 proc_pid_stat
  for (auto& word : field) word = next_word(rest);
  if (field.back().empty()) return std::nullopt;
  const auto number = [&field](std::size_t manual_number) { return to_number(field[manual_number - 3]); };
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return ProcessSample{.pid = pid,
                       .parent = static_cast<pid_t>(number(4)),
                       .start_time = number(22),
                       .own_ticks = number(14) + number(15),
                       .children_ticks = number(16) + number(17),
                       .threads = static_cast<std::uint32_t>(number(20)),
                       .resident = Bytes{number(24) * page}};
}

std::vector<ProcessSample> sample_tree(pid_t root) {
  std::vector<ProcessSample> tree;
  const auto first = sample_process(root);
  if (!first) return tree;
  tree.push_back(*first);
  std::set<pid_t> seen{root};
  const auto all = lists_children() ? std::multimap<pid_t, pid_t>{} : parents_of_all();
  for (std::size_t next = 0; next < tree.size() && tree.size() < kMostProcesses; ++next) {
    std::vector<pid_t> children;
    if (lists_children()) {
      children = children_of(tree[next]);
    } else {
      const auto [begin, end] = all.equal_range(tree[next].pid);
      for (auto child = begin; child != end; ++child) children.push_back(child->second);
    }
    for (const pid_t child : children) {
      if (!seen.insert(child).second) continue;
      if (const auto sample = sample_process(child)) tree.push_back(*sample);
    }
  }
  return tree;
}

std::optional<MemoryShare> memory_share(pid_t pid) {
  const std::string text = read_file(fmt::format("/proc/{}/smaps_rollup", pid));
  const auto kilobytes = [&text](std::string_view name) -> std::optional<std::uint64_t> {
    const auto at = text.find(name);
    if (at == std::string::npos) return std::nullopt;
    std::string_view rest = std::string_view(text).substr(at + name.size());
    return to_number(next_word(rest));
  };
  const auto anonymous = kilobytes("\nPss_Anon:");
  const auto shared = kilobytes("\nPss_Shmem:");
  if (!anonymous || !shared) return std::nullopt;
  return MemoryShare{kib(*anonymous + kilobytes("\nSwapPss:").value_or(0)), kib(*shared)};
}

std::uint64_t open_sockets(pid_t pid) {
  const std::string text = read_file(fmt::format("/proc/{}/net/sockstat", pid));
  constexpr std::string_view kFirst = "sockets: used";
  if (!text.starts_with(kFirst)) return 0;
  std::string_view rest = std::string_view(text).substr(kFirst.size());
  return to_number(next_word(rest));
}

Bytes tmpfs_used(pid_t pid) {
  const UniqueFd root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Bytes sum;
  if (!root) return sum;
  const std::string mounts = read_file(fmt::format("/proc/{}/mountinfo", pid));
  std::set<std::string> counted;  // devices: one tmpfs may be mounted at several places
  std::string_view rest = mounts;
  while (!rest.empty()) {
    const auto line_end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
    if (line.find(" - tmpfs ") == std::string_view::npos) continue;
    std::array<std::string_view, 6> field;  // id, parent, device, root, mount point, options
    for (auto& word : field) word = next_word(line);
    const bool writable = field[5].starts_with("rw");
    if (!writable || field[4].empty() || !counted.emplace(field[2]).second) continue;
    // The path is resolved inside that root and through no link, so the guest cannot point it elsewhere.
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    const std::string path(field[4]);
    const UniqueFd mount(
        static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
    struct statfs status{};
    if (!mount || ::fstatfs(mount.get(), &status) != 0 || status.f_type != TMPFS_MAGIC) continue;
    sum.count += (status.f_blocks - status.f_bfree) * static_cast<std::uint64_t>(status.f_bsize);
  }
  return sum;
}

}  // namespace prims::sandbox

#include "layers/compiled_modules.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/unique_fd.h"
#include "layers/build_directory.h"
#include "layers/hash.h"
#include "layers/tree.h"
#include "session/remove_tree.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr const char* kSize = "size";

/// A test of a package's own: only a test runner imports it, and big packages have more of them than of all
/// else.
bool is_test(const fs::path& module) {
  return module.filename().native().starts_with("test_") &&
         std::ranges::find(module, fs::path("tests")) != module.end();
}

bool is_file(const fs::directory_entry& entry) {
  std::error_code failed;
  return entry.symlink_status(failed).type() == fs::file_type::regular;
}

/// The modules to compile in one entry of site-packages, sorted. Links are not followed.
Result<std::vector<std::string>> modules_of(const fs::directory_entry& top, const fs::path& packages) {
  std::vector<std::string> found;
  std::error_code failed;
  const auto add = [&](const fs::directory_entry& entry) {
    auto module = entry.path().native().substr(packages.native().size() + 1);
    // A line break would end the module's line in the list that the compiler reads.
    const bool wanted = module.ends_with(".py") && module.find('\n') == std::string::npos && !is_test(module);
    if (wanted && is_file(entry)) found.push_back(std::move(module));
  };
  add(top);
  if (top.symlink_status(failed).type() == fs::file_type::directory) {
    fs::recursive_directory_iterator entries(top.path(), failed);
    for (; !failed && entries != fs::recursive_directory_iterator(); entries.increment(failed)) add(*entries);
  }
  if (failed) return fail_errno(top.path().string(), failed.value());
  std::ranges::sort(found);
  return found;
}

Result<Bytes> add_file(Sha256& sum, const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return fail_errno(file.string());
  // The length goes first, so that no content can pass for the next file's name.
  sum.add(fmt::format("{}\n", status.st_size));
  std::array<char, 65536> chunk{};
  Bytes all;
  while (true) {
    const auto got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(file.string());
    if (got == 0) return all;
    sum.add({chunk.data(), static_cast<std::size_t>(got)});
    all.count += static_cast<std::uint64_t>(got);
  }
}

Result<ModuleGroup> read_group(std::vector<std::string> modules, const fs::path& packages,
                               const Interpreter& interpreter) {
  ModuleGroup group;
  Sha256 sum;
  sum.add(fmt::format("{}\n{}\n", kFormat, interpreter.key));
  for (const auto& module : modules) {
    sum.add(module + "\n");
    PRIMS_ASSIGN_OR_RETURN(const auto size, add_file(sum, packages / module));
    group.source.count += size.count;
  }
  group.key = sum.hex();
  group.modules = std::move(modules);
  return group;
}

/// A kept group, locked against being removed.
std::optional<UniqueFd> open_kept(const fs::path& directory, int how) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || ::flock(fd.get(), how) != 0) return std::nullopt;
  struct stat held{};
  struct stat named{};
  const bool same =
      ::fstat(fd.get(), &held) == 0 && ::stat(directory.c_str(), &named) == 0 && held.st_ino == named.st_ino;
  if (!same) return std::nullopt;
  return fd;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Bytes size_of(int directory, std::size_t count) {
  Bytes all;
  for (std::size_t i = 0; i < count; ++i) {
    struct stat status{};
    if (::fstatat(directory, std::to_string(i).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      all.count += static_cast<std::uint64_t>(status.st_size);
  }
  return all;
}

/// Whether all of it has reached the disk: after a power failure a file may have its name and no content.
bool is_whole(int directory, std::size_t count) {
  const UniqueFd file(::openat(directory, kSize, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 32> text{};
  const auto got = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (got <= 0) return false;
  return number_in({text.data(), static_cast<std::size_t>(got)}) == size_of(directory, count).count;
}

/// Leaves only ordinary files of the expected names, which then are ours.
Result<> scrub(const fs::path& made, std::size_t count) {
  const bool change_owner = ::geteuid() == 0;
  std::vector<fs::path> foreign;
  std::error_code failed;
  fs::directory_iterator entries(made, failed);
  for (; !failed && entries != fs::directory_iterator(); entries.increment(failed)) {
    const auto& path = entries->path();
    const auto number = number_in(path.filename().native());
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return fail_errno(path.string());
    if (!number || *number >= count || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
      foreign.push_back(path);
      continue;
    }
    if (change_owner && ::lchown(path.c_str(), 0, 0) != 0) return fail_errno(path.string());
    if (::chmod(path.c_str(), 0644) != 0) return fail_errno(path.string());
  }
  if (failed) return fail_errno(made.string(), failed.value());
  for (const auto& path : foreign) PRIMS_RETURN_ON_ERROR(session::remove_tree(path));
  if (change_owner && ::chown(made.c_str(), 0, 0) != 0) return fail_errno(made.string());
  return {};
}

Result<> link_file(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  if (errno == EEXIST) {
    // What a package brings along compiled may be of other sources.
    if (::unlink(to.c_str()) == 0 && ::link(from.c_str(), to.c_str()) == 0) return {};
  }
  if (errno != EMLINK) return fail_errno(to.string());
  std::error_code failed;
  fs::copy_file(from, to, failed);
  if (failed) return fail_errno(to.string(), failed.value());
  return {};
}

}  // namespace

CompiledModules::CompiledModules(fs::path kept, const fs::path& environment, Interpreter interpreter)
    : kept_(std::move(kept)),
      packages_(environment / site_packages(interpreter)),
      interpreter_(std::move(interpreter)) {}

Result<std::vector<ModuleGroup>> CompiledModules::survey() const {
  std::vector<ModuleGroup> groups;
  std::error_code failed;
  fs::directory_iterator entries(packages_, failed);
  for (; !failed && entries != fs::directory_iterator(); entries.increment(failed)) {
    PRIMS_ASSIGN_OR_RETURN(auto modules, modules_of(*entries, packages_));
    if (modules.empty()) continue;
    PRIMS_ASSIGN_OR_RETURN(auto group, read_group(std::move(modules), packages_, interpreter_));
    groups.push_back(std::move(group));
  }
  if (failed) return fail_errno(packages_.string(), failed.value());
  return groups;
}

fs::path CompiledModules::compiled_path(const std::string& module) const {
  const auto path = packages_ / module;
  return path.parent_path() / "__pycache__" /
         fmt::format("{}.{}.pyc", path.stem().native(), interpreter_.cache_tag);
}

Result<> CompiledModules::link(const ModuleGroup& group, const fs::path& from) const {
  fs::path last;
  for (std::size_t i = 0; i < group.modules.size(); ++i) {
    const auto made = from / std::to_string(i);
    if (::access(made.c_str(), F_OK) != 0) continue;
    const auto target = compiled_path(group.modules[i]);
    if (target.parent_path() != last) {
      last = target.parent_path();
      PRIMS_RETURN_ON_ERROR(make_plain_directory(last));
    }
    PRIMS_RETURN_ON_ERROR(link_file(made, target));
  }
  return {};
}

bool CompiledModules::take(const ModuleGroup& group) const {
  const auto directory = kept_ / group.key;
  const auto held = open_kept(directory, LOCK_SH);
  if (!held || !is_whole(held->get(), group.modules.size())) return false;
  ::futimens(held->get(), nullptr);
  const auto linked = link(group, directory);
  if (!linked) log::warning("compiled modules that are there are not used: {}", linked.error().message);
  return linked.has_value();
}

Result<> CompiledModules::place(const ModuleGroup& group, const fs::path& made, Made how_many) const {
  PRIMS_RETURN_ON_ERROR(scrub(made, group.modules.size()));
  PRIMS_RETURN_ON_ERROR(link(group, made));
  if (group.key.empty() || how_many != Made::all) return {};
  const UniqueFd directory(::open(made.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!directory) return fail_errno(made.string());
  const auto size = size_of(directory.get(), group.modules.size());
  PRIMS_RETURN_ON_ERROR(write_plain_file(made / kSize, std::to_string(size.count)));
  const auto target = kept_ / group.key;
  if (::rename(made.c_str(), target.c_str()) == 0) return {};
  if (errno != ENOTEMPTY && errno != EEXIST) return fail_errno(target.string());
  // Another process was quicker, or what was there is damaged: this one is as good or better, and the other
  // goes with the build directory.
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return {};
  return fail_errno(target.string());
}

void collect_compiled(const fs::path& kept, const fs::path& builds, Bytes limit) {
  struct Candidate {
    fs::path directory;
    fs::file_time_type used;
    Bytes size;
  };
  std::vector<Candidate> all;
  Bytes total;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(kept, failed)) {
    const auto size = measure_tree(entry.path());
    const auto used = entry.last_write_time(failed);
    if (!size || failed) continue;
    all.push_back({entry.path(), used, size->disk});
    total.count += size->disk.count;
  }
  std::ranges::sort(all, {}, &Candidate::used);
  for (const auto& candidate : all) {
    if (total <= limit) break;
    const auto lock = open_kept(candidate.directory, LOCK_EX | LOCK_NB);
    auto grave = BuildDirectory::create(builds);
    if (!lock || !grave) continue;
    if (::rename(candidate.directory.c_str(), (grave->path() / "removed").c_str()) != 0) continue;
    total.count -= candidate.size.count;
  }
}

}  // namespace prims::layers

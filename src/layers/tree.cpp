#include "layers/tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <system_error>

#include "base/unique_fd.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostEntries = 1'000'000;

std::string minor_version(const Interpreter& interpreter) {
  return interpreter.version.substr(0, interpreter.version.rfind('.'));
}

bool is_interpreter_link(const fs::path& relative) {
  return relative.parent_path() == "bin" && relative.filename().string().starts_with("python");
}

/// Whether a link at `relative` with that target stays below the environment, as a sandbox sees it.
bool stays_inside(const fs::path& relative, const fs::path& target) {
  const fs::path root(kEnvironmentPath);
  const auto resolved =
      (target.is_absolute() ? target : root / relative.parent_path() / target).lexically_normal();
  const auto [rest, unused] = std::mismatch(root.begin(), root.end(), resolved.begin(), resolved.end());
  return rest == root.end();
}

Result<> remove_entry(const fs::path& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
  if (failed) return fail_errno(path.string(), failed.value());
  return {};
}

Result<> write_link(const fs::path& path, const std::string& target) {
  PRIMS_RETURN_ON_ERROR(remove_entry(path));
  if (::symlink(target.c_str(), path.c_str()) != 0) return fail_errno(path.string());
  return {};
}

/// Calls `visit(path)` for the root and everything below it. Links are not followed; nothing else runs in the
/// tree any more.
Result<> walk(const fs::path& root, const std::function<Result<>(const fs::path&)>& visit) {
  PRIMS_RETURN_ON_ERROR(visit(root));
  std::error_code failed;
  fs::recursive_directory_iterator entries(root, failed);
  while (!failed && entries != fs::recursive_directory_iterator()) {
    // A copy: a link that leads out is removed by its visit.
    const auto path = entries->path();
    PRIMS_RETURN_ON_ERROR(visit(path));
    entries.increment(failed);
  }
  if (failed) return fail_errno(root.string(), failed.value());
  return {};
}

Result<> finish_link(const fs::path& root, const fs::path& path) {
  std::error_code failed;
  const auto target = fs::read_symlink(path, failed);
  if (failed) return fail_errno(path.string(), failed.value());
  const auto below = path.lexically_relative(root);
  if (is_interpreter_link(below) || stays_inside(below, target)) return {};
  if (::unlink(path.c_str()) != 0) return fail_errno(path.string());
  return {};
}

Result<> finish_entry(const fs::path& root, const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return fail_errno(path.string());
  const bool change_owner = ::geteuid() == 0 && (status.st_uid != 0 || status.st_gid != 0);
  if (change_owner && ::lchown(path.c_str(), 0, 0) != 0) return fail_errno(path.string());
  if (S_ISLNK(status.st_mode)) return finish_link(root, path);
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return fail(Kind::invalid_input,
                fmt::format("{} is neither a file nor a directory", path.lexically_relative(root).string()));
  }
  const bool executable = S_ISDIR(status.st_mode) || (status.st_mode & 0111) != 0;
  const mode_t mode = executable ? 0755 : 0644;
  if ((status.st_mode & 07777) != mode && ::chmod(path.c_str(), mode) != 0) return fail_errno(path.string());
  return {};
}

}  // namespace

Result<TreeSize> measure_tree(const fs::path& environment) {
  TreeSize size;
  PRIMS_RETURN_ON_ERROR(walk(environment, [&size](const fs::path& path) -> Result<> {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return fail_errno(path.string());
    size.disk.count += static_cast<std::uint64_t>(status.st_blocks) * 512;
    if (S_ISREG(status.st_mode)) size.content.count += static_cast<std::uint64_t>(status.st_size);
    if (++size.entries > kMostEntries)
      return fail(Kind::invalid_input, "the packages have more than a million files");
    return {};
  }));
  return size;
}

Result<TreeSize> finish_tree(const fs::path& environment) {
  PRIMS_RETURN_ON_ERROR(
      walk(environment, [&](const fs::path& path) { return finish_entry(environment, path); }));
  return measure_tree(environment);
}

std::string site_packages(const Interpreter& interpreter) {
  return fmt::format("lib/python{}/site-packages", minor_version(interpreter));
}

Result<> make_plain_directory(const fs::path& directory) {
  struct stat status{};
  if (::lstat(directory.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return {};
    if (::unlink(directory.c_str()) != 0) return fail_errno(directory.string());
  }
  if (::mkdir(directory.c_str(), 0755) != 0) return fail_errno(directory.string());
  return {};
}

Result<> make_writable(const fs::path& directory, uid_t owner) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(directory.string());
  if (owner != ::geteuid() && ::chown(directory.c_str(), owner, owner) != 0)
    return fail_errno(directory.string());
  return {};
}

Result<> write_plain_file(const fs::path& file, std::string_view content) {
  PRIMS_RETURN_ON_ERROR(remove_entry(file));
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) return fail_errno(file.string());
  while (!content.empty()) {
    const auto written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(file.string());
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<> write_interpreter_files(const fs::path& environment, const Interpreter& interpreter) {
  const auto home = fs::path(interpreter.executable).parent_path().string();
  const auto settings = fmt::format(
      "home = {}\nimplementation = CPython\nversion_info = {}\ninclude-system-site-packages = false\n", home,
      interpreter.version);
  PRIMS_RETURN_ON_ERROR(write_plain_file(environment / "pyvenv.cfg", settings));
  const auto programs = environment / "bin";
  PRIMS_RETURN_ON_ERROR(make_plain_directory(programs));
  PRIMS_RETURN_ON_ERROR(write_link(programs / "python", interpreter.executable));
  PRIMS_RETURN_ON_ERROR(write_link(programs / "python3", "python"));
  return write_link(programs / ("python" + minor_version(interpreter)), "python");
}

Result<> write_skeleton(const fs::path& environment, const Interpreter& interpreter, uid_t owner) {
  std::error_code failed;
  fs::create_directories(environment / site_packages(interpreter), failed);
  if (failed) return fail_errno(environment.string(), failed.value());
  PRIMS_RETURN_ON_ERROR(write_link(environment / "lib64", "lib"));
  PRIMS_RETURN_ON_ERROR(write_interpreter_files(environment, interpreter));
  if (owner == ::geteuid()) return {};
  if (::lchown(environment.c_str(), owner, owner) != 0) return fail_errno(environment.string());
  for (const auto& entry : fs::recursive_directory_iterator(environment)) {
    if (::lchown(entry.path().c_str(), owner, owner) != 0) return fail_errno(entry.path().string());
  }
  return {};
}

}  // namespace prims::layers

#include "launcher/build_root.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/files.h"
#include "launcher/kernel.h"
#include "launcher/text.h"
#include "launcher/trees.h"

namespace prims::launcher {
namespace {

constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV;

/// Where the new root is built: any directory that surely exists.
constexpr const char* kStaging = "/proc";

/// Paths of the Spec are absolute; while building they are relative to the working directory, the new root.
const char* relative(std::string_view path) {
  return path.data() + 1;
}

Failure make_file(const wire::Step& step) {
  const int file = open(relative(step.path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, step.mode);
  LAUNCHER_TRY(check("create file", file));
  std::string_view rest = step.text;
  Failure failure;
  while (!rest.empty() && !failure) {
    const ssize_t written = write(file, rest.data(), rest.size());
    failure = check("write file", written);
    if (!failure) rest.remove_prefix(static_cast<std::size_t>(written));
  }
  close(file);
  return failure;
}

Failure mount_tmpfs(const wire::Step& step) {
  Text options;
  options.add("size=").add(step.size).add(",nr_inodes=").add(step.inodes).add(",mode=").add(step.mode, 8);
  return check("mount tmpfs", mount("tmpfs", relative(step.path), "tmpfs", kPlain, options.c_str()));
}

Failure perform(const wire::Step& step, const Trees& trees) {
  switch (step.operation) {
    case wire::Operation::directory:
      return check("mkdir", mkdir(relative(step.path), step.mode));
    case wire::Operation::file:
      return make_file(step);
    case wire::Operation::symlink:
      return check("symlink", symlink(step.text.data(), relative(step.path)));
    case wire::Operation::tmpfs:
      return mount_tmpfs(step);
    case wire::Operation::bind:
      if (trees.fds[step.tree] < 0) return {};
      return put_tree("mount bind", trees.fds[step.tree], relative(step.path));
  }
  return Failure{"unknown operation", EINVAL};
}

constexpr unsigned long kProc = kPlain | MS_NOEXEC;

/// Covers are an empty file and an empty directory on a small file system at `place`, for users that this
/// user namespace does not know as well.
Failure make_covers(const char* place) {
  LAUNCHER_TRY(check("mount mask", mount("tmpfs", place, "tmpfs", kPlain, "size=4k,nr_inodes=8,mode=0711")));
  Text path;
  const int file = open(path.add(place).add("/file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
  LAUNCHER_TRY(check("create mask", file));
  close(file);
  path = {};
  LAUNCHER_TRY(check("mkdir mask", mkdir(path.add(place).add("/directory").c_str(), 0555)));
  return check("remount mask",
               mount(nullptr, place, nullptr, MS_REMOUNT | MS_BIND | kProc | MS_RDONLY, nullptr));
}

/// Covers entries of /proc that say something about the host, and makes the rest read-only.
Failure cover_proc(const wire::Spec& spec, const char* covers) {
  Text file;
  Text directory;
  file.add(covers).add("/file");
  directory.add(covers).add("/directory");
  LAUNCHER_TRY(spec.masks.each([&file, &directory](const wire::Mask& mask) {
    const char* cover = mask.directory != 0 ? directory.c_str() : file.c_str();
    const Failure failure = check("mask proc", mount(cover, relative(mask.path), nullptr, MS_BIND, nullptr));
    return failure.error == ENOENT ? Failure{} : failure;
  }));
  constexpr unsigned long kReadOnly = MS_REMOUNT | MS_BIND | MS_RDONLY | kProc;
  return check("remount proc", mount(nullptr, "proc", nullptr, kReadOnly, nullptr));
}

Failure mount_proc() {
  return check("mount proc", mount("proc", "proc", "proc", kProc, nullptr));
}

/// Settings of the new user and network namespaces. Buffers of TCP sockets grow by themselves, up to what is
/// said here.
Failure restrict_kernel() {
  LAUNCHER_TRY(write_file("forbid user namespaces", "proc/sys/user/max_user_namespaces", "0"));
  LAUNCHER_TRY(write_file("bound tcp", "proc/sys/net/ipv4/tcp_wmem", "4096 16384 131072"));
  return write_file("bound tcp", "proc/sys/net/ipv4/tcp_rmem", "4096 131072 131072");
}

Failure build_proc(const wire::Spec& spec) {
  constexpr const char* kCovers = ".mask";
  LAUNCHER_TRY(mount_proc());
  LAUNCHER_TRY(restrict_kernel());
  LAUNCHER_TRY(check("mkdir mask", mkdir(kCovers, 0700)));
  LAUNCHER_TRY(make_covers(kCovers));
  LAUNCHER_TRY(cover_proc(spec, kCovers));
  LAUNCHER_TRY(check("umount mask", umount2(kCovers, MNT_DETACH)));
  return check("rmdir mask", rmdir(kCovers));
}

/// Where a stage keeps the covers: in a place where each sandbox mounts something of its own over them.
const char* place_of_covers(const wire::Spec& spec) {
  return spec.steps.each([](const wire::Step& step) {
    return step.operation == wire::Operation::tmpfs ? relative(step.path) : nullptr;
  });
}

Failure mount_terminals() {
  constexpr const char* kOptions = "newinstance,ptmxmode=0666,mode=0600";
  return check("mount devpts", mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, kOptions));
}

/// man 2 pivot_root, "pivot_root(".", ".")": the old root ends up on top of the new one and is detached from
/// there.
Failure enter_root() {
  LAUNCHER_TRY(check("pivot_root", kernel::pivot_root(".", ".")));
  LAUNCHER_TRY(check("detach old root", umount2(".", MNT_DETACH)));
  LAUNCHER_TRY(check("chdir root", chdir("/")));
  constexpr unsigned long kReadOnly = MS_REMOUNT | MS_BIND | MS_RDONLY | kPlain;
  return check("remount root", mount(nullptr, "/", nullptr, kReadOnly, nullptr));
}

Failure begin_root() {
  umask(0);  // modes are as the Spec says
  LAUNCHER_TRY(check("make mounts private", mount(nullptr, "/", nullptr, MS_PRIVATE | MS_REC, nullptr)));
  constexpr const char* kOptions = "size=64m,nr_inodes=16384,mode=0755";
  LAUNCHER_TRY(check("mount root", mount("tmpfs", kStaging, "tmpfs", kPlain, kOptions)));
  return check("chdir staging", chdir(kStaging));
}

}  // namespace

Failure build_root(const wire::Spec& spec, const Trees& trees) {
  LAUNCHER_TRY(begin_root());
  LAUNCHER_TRY(spec.steps.each([&trees](const wire::Step& step) { return perform(step, trees); }));
  LAUNCHER_TRY(mount_terminals());
  LAUNCHER_TRY(build_proc(spec));
  return enter_root();
}

Failure build_stage_root(const wire::Spec& spec, const Trees& trees) {
  LAUNCHER_TRY(begin_root());
  LAUNCHER_TRY(spec.steps.each([&trees](const wire::Step& step) {
    return step.operation == wire::Operation::tmpfs ? Failure{} : perform(step, trees);
  }));
  LAUNCHER_TRY(mount_proc());
  const char* covers = place_of_covers(spec);
  if (covers == nullptr) return Failure{"no memory file system", EINVAL};
  LAUNCHER_TRY(make_covers(covers));
  return enter_root();
}

Failure complete_root(const wire::Spec& spec, Proc proc) {
  umask(0);
  LAUNCHER_TRY(check("chdir root", chdir("/")));
  LAUNCHER_TRY(mount_proc());
  if (proc == Proc::of_new_namespaces) LAUNCHER_TRY(restrict_kernel());
  LAUNCHER_TRY(cover_proc(spec, place_of_covers(spec)));
  LAUNCHER_TRY(spec.steps.each([](const wire::Step& step) {
    return step.operation == wire::Operation::tmpfs ? mount_tmpfs(step) : Failure{};
  }));
  return mount_terminals();
}

}  // namespace prims::launcher

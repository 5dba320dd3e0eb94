#include "launcher/census.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/text.h"

namespace prims::launcher {
namespace {

/// A directory has two links and one for each directory in it: here, one for each thread.
std::uint32_t threads_of(int proc, const char* process) {
  Text path;
  path.add(process).add("/task");
  struct stat tasks{};
  if (fstatat(proc, path.c_str(), &tasks, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return tasks.st_nlink > 2 ? static_cast<std::uint32_t>(tasks.st_nlink - 2) : 1;
}

}  // namespace

std::uint32_t count_threads() {
  alignas(dirent64) static char entries[std::size_t{16} << 10];
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::uint32_t threads = 0;
  ssize_t size = 0;
  while ((size = getdents64(proc, entries, sizeof entries)) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') threads += threads_of(proc, entry->d_name);
    }
  }
  if (proc >= 0) close(proc);
  return threads;
}

}  // namespace prims::launcher

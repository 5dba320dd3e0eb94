#include "guest/resting_memory.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

// Of CPython 3.4 and later, outside of its stable ABI: optional here.
struct ArenaAllocator {
  void* context;
  void* (*alloc)(void* context, std::size_t size);
  void (*free)(void* context, void* address, std::size_t size);
};
extern "C" {
[[gnu::weak, gnu::visibility("default")]] void get_arena_allocator(ArenaAllocator* allocator) __asm__(
    "PyObject_GetArenaAllocator");
[[gnu::weak, gnu::visibility("default")]] void set_arena_allocator(ArenaAllocator* allocator) __asm__(
    "PyObject_SetArenaAllocator");
}

namespace prims::guest {
namespace {

constexpr std::uintptr_t kPage = 4096;

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

Range common(Range a, Range b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// Addresses come as text from /proc.
void* memory_at(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// --- where objects are
// -------------------------------------------------------------------------------------------------------

struct Objects {
  static constexpr std::size_t kMost = 4096;
  ArenaAllocator allocator{};
  Range arenas[kMost];
  std::size_t count = 0;
  bool noting = false;
};

Objects objects;

void* allocate_arena(void* context, std::size_t size) {
  void* address = objects.allocator.alloc(context, size);
  if (address == nullptr || !objects.noting || objects.count == Objects::kMost) return address;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  objects.arenas[objects.count++] = {begin, begin + size};
  return address;
}

void free_arena(void* context, void* address, std::size_t size) {
  for (std::size_t i = 0; objects.noting && i < objects.count; ++i) {
    if (objects.arenas[i].begin != reinterpret_cast<std::uintptr_t>(address)) continue;
    objects.arenas[i] = objects.arenas[--objects.count];
    break;
  }
  objects.allocator.free(context, address, size);
}

// --- which memory moves
// -------------------------------------------------------------------------------------------------------

/// Room for what is found. It lies in a mapping of its own, which stays where it is.
struct Scratch {
  static constexpr std::size_t kMost = 16384;
  Range known[kMost];  ///< memory that may move, whatever it is mapped from
  std::size_t count = 0;
  std::uint64_t pages[512];
  std::size_t text_size = 0;
  char text[std::size_t{8} << 20];

  void add(Range range) {
    range = {range.begin & ~(kPage - 1), (range.end + kPage - 1) & ~(kPage - 1)};
    if (count < kMost) known[count++] = range;
  }
};

int add_variables(dl_phdr_info* library, std::size_t, void* scratch) {
  for (std::size_t i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
    const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
    static_cast<Scratch*>(scratch)->add({begin, begin + segment.p_memsz});
  }
  return 0;
}

bool read_mappings(Scratch& scratch) {
  const int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t got = 1;
  while (got > 0 && scratch.text_size < sizeof scratch.text) {
    got = read(file, scratch.text + scratch.text_size, sizeof scratch.text - scratch.text_size);
    if (got > 0) scratch.text_size += static_cast<std::size_t>(got);
  }
  close(file);
  return got == 0;
}

/// One mapping of /proc/self/smaps (man 5 proc_pid_smaps).
struct Mapping {
  Range range;
  int protection = 0;
  bool movable = false;  ///< private, no code, and treated by fork() as memory usually is
  bool heap = false;
};

std::string_view take(std::string_view& text, char end) {
  const std::size_t length = text.find(end);
  if (length == std::string_view::npos) {
    const std::string_view rest = text;
    text = {};
    return rest;
  }
  const std::string_view taken(text.data(), length);
  text.remove_prefix(length + 1);
  return taken;
}

std::uintptr_t from_hex(std::string_view digits) {
  std::uintptr_t value = 0;
  for (const char c : digits)
    value = value * 16 + static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

/// Shared; input and output; without its own order of pages; huge pages of a pool; not for forks, or emptied
/// in them; locked.
bool is_special(std::string_view flags) {
  constexpr std::string_view kSpecial[] = {"sh", "io", "pf", "ht", "dc", "wf", "lo"};
  while (!flags.empty()) {
    const std::string_view flag = take(flags, ' ');
    for (const std::string_view special : kSpecial) {
      if (flag == special) return true;
    }
  }
  return false;
}

bool next_mapping(std::string_view& text, Mapping& mapping) {
  if (text.empty()) return false;
  std::string_view head = take(text, '\n');
  mapping = {};
  mapping.range.begin = from_hex(take(head, '-'));
  mapping.range.end = from_hex(take(head, ' '));
  const std::string_view access = take(head, ' ');
  mapping.heap = head.ends_with("[heap]");
  mapping.protection = access.starts_with("rw") ? PROT_READ | PROT_WRITE : PROT_READ;
  mapping.movable = access == "rw-p" || access == "r--p";
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    if (take(line, ' ') != "VmFlags:") continue;
    if (is_special(line)) mapping.movable = false;
    return true;
  }
  return false;
}

// --- moving
// -------------------------------------------------------------------------------------------------------

class File {
 public:
  File() : fd_(create()), page_map_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0) most_ = limit.rlim_cur;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    fcntl(fd_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    close(fd_);
    close(page_map_);
  }

  bool good() const { return fd_ >= 0 && page_map_ >= 0; }

  /// Moves the pages that are this process's own, and few others that lie between them.
  bool move(Range range, int protection, Scratch& scratch) {
    Range run;
    for (std::uintptr_t at = range.begin; at < range.end;) {
      const std::uintptr_t pages = (range.end - at) / kPage;
      const std::size_t count = pages < 512 ? pages : 512;
      const auto bytes = static_cast<ssize_t>(count * sizeof(std::uint64_t));
      if (pread(page_map_, scratch.pages, static_cast<std::size_t>(bytes),
                static_cast<off_t>(at / kPage * sizeof(std::uint64_t))) != bytes)
        return false;
      for (std::size_t i = 0; i < count; ++i, at += kPage) {
        if (!is_own(scratch.pages[i])) continue;
        if (run.end != 0 && at - run.end > kGap) {
          if (!move_run(run, protection)) return false;
          run = {};
        }
        if (run.end == 0) run.begin = at;
        run.end = at + kPage;
      }
    }
    return run.end == 0 || move_run(run, protection);
  }

 private:
  static constexpr std::uintptr_t kGap = 16 * kPage;
  static constexpr std::uintptr_t kStep = std::uintptr_t{1} << 20;  ///< what is there twice for a moment

  static int create() {
    constexpr unsigned kNoExecSeal = 8;  // Linux 6.3
    const int fd = memfd_create("template", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal);
    return fd >= 0 ? fd : memfd_create("template", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  }

  /// Present or swapped out, and not a page of a file (man 5 proc_pid_pagemap).
  static bool is_own(std::uint64_t page) { return (page >> 62) != 0 && ((page >> 61) & 1) == 0; }

  bool move_run(Range run, int protection) {
    for (std::uintptr_t at = run.begin; at < run.end; at += kStep) {
      if (!move_step({at, run.end - at < kStep ? run.end : at + kStep}, protection)) return false;
    }
    return true;
  }

  /// Between the two calls nothing may write to this memory: they leave only errno behind, and that of this
  /// thread lies elsewhere.
  bool move_step(Range step, int protection) {
    const std::size_t size = step.end - step.begin;
    if (most_ - size_ < size) return false;
    const auto place = static_cast<off_t>(size_);
    if (pwrite(fd_, memory_at(step.begin), size, place) != static_cast<ssize_t>(size)) return false;
    if (mmap(memory_at(step.begin), size, protection, MAP_PRIVATE | MAP_FIXED, fd_, place) == MAP_FAILED)
      return false;
    size_ += size;
    return true;
  }

  int fd_;
  int page_map_;
  std::uint64_t size_ = 0;
  std::uint64_t most_ = 0;
};

void move_all(Scratch& scratch) {
  const auto thread =
      reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());  // the kernel writes there as well
  File file;
  if (!file.good()) return;
  std::string_view text(scratch.text, scratch.text_size);
  for (Mapping mapping; next_mapping(text, mapping);) {
    if (!mapping.movable || (mapping.range.begin <= thread && thread < mapping.range.end)) continue;
    if (mapping.heap) {
      if (!file.move(mapping.range, mapping.protection, scratch)) return;
      continue;
    }
    for (std::size_t i = 0; i < scratch.count; ++i) {
      const Range both = common(mapping.range, scratch.known[i]);
      if (both.begin < both.end && !file.move(both, mapping.protection, scratch)) return;
    }
  }
}

bool is_alone() {
  struct stat tasks{};
  return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

}  // namespace

void note_object_memory() {
  if (get_arena_allocator == nullptr || set_arena_allocator == nullptr || objects.noting) return;
  get_arena_allocator(&objects.allocator);
  objects.noting = true;
  ArenaAllocator noted{objects.allocator.context, allocate_arena, free_arena};
  set_arena_allocator(&noted);
}

void rest_memory() {
  objects.noting = false;
  if (sysconf(_SC_PAGESIZE) != kPage || !is_alone()) return;
  void* room = mmap(nullptr, sizeof(Scratch), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return;
  auto& scratch = *static_cast<Scratch*>(room);
  for (std::size_t i = 0; i < objects.count; ++i) scratch.add(objects.arenas[i]);
  dl_iterate_phdr(add_variables, &scratch);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  if (read_mappings(scratch)) move_all(scratch);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  munmap(room, sizeof(Scratch));
}

}  // namespace prims::guest

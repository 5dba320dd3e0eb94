#include "layers/key_lock.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>

#include "io/wait.h"
#include "layers/hash.h"

namespace prims::layers {
namespace {

constexpr Milliseconds kFirstPause{5};
constexpr Milliseconds kLongestPause{100};

/// A byte offset that fits off_t.
off_t offset_of(std::string_view key) {
  const auto digest = sha256_hex(key).substr(0, 16);
  std::uint64_t number = 0;
  std::from_chars(digest.data(), digest.data() + digest.size(), number, 16);
  return static_cast<off_t>(number >> 2);
}

}  // namespace

Result<std::optional<KeyLock>> KeyLock::try_take(const std::filesystem::path& file, std::string_view key) {
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(file.string());
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = offset_of(key);
  range.l_len = 1;
  if (::fcntl(fd.get(), F_OFD_SETLK, &range) == 0) return std::optional(KeyLock(std::move(fd)));
  if (errno == EAGAIN || errno == EACCES) return std::optional<KeyLock>();
  return fail_errno("lock " + file.string());
}

io::Task<Result<KeyLock>> KeyLock::take(std::filesystem::path file, std::string key, Deadline deadline) {
  auto pause = kFirstPause;
  while (true) {
    auto tried = try_take(file, key);
    PRIMS_CO_ASSIGN_OR_RETURN(auto lock, std::move(tried));
    if (lock) co_return *std::move(lock);
    if (deadline.passed())
      co_return fail(Kind::timed_out, "another process is still making the same packages");
    auto slept = co_await io::sleep_until(Deadline::after(pause));
    PRIMS_CO_RETURN_ON_ERROR(std::move(slept));
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace prims::layers

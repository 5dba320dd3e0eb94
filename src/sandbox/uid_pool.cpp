#include "sandbox/uid_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <set>
#include <utility>

namespace prims::sandbox {
namespace {

constexpr uid_t kLeastUid = 1000;  // below are the system's own accounts
constexpr uid_t kNobody = 65534;   // shared by everything that has no owner
constexpr std::uint64_t kInvalidUid = 0xffffffff;

/// Locks of open file descriptions: the kernel releases them when the last descriptor is closed, also by a
/// crash.
Result<> set_lock(int file, short type, uid_t uid) {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = uid;
  range.l_len = 1;
  if (::fcntl(file, F_OFD_SETLK, &range) == 0) return {};
  return fail_errno(fmt::format("lock uid {}", uid));
}

}  // namespace

struct UidLease::Shared {
  UniqueFd file;
  uid_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t cursor = 1;  ///< offset of the uid to try next; offset 0 owns workspaces
  std::set<uid_t> leased;    ///< a process's own locks never conflict with each other
};

UidLease::UidLease(std::shared_ptr<Shared> shared, uid_t uid) : shared_(std::move(shared)), uid_(uid) {}

UidLease::UidLease(UidLease&& other) noexcept
    : shared_(std::move(other.shared_)), uid_(std::exchange(other.uid_, 0)) {}

UidLease& UidLease::operator=(UidLease&& other) noexcept {
  UidLease taken(std::move(other));
  std::swap(shared_, taken.shared_);
  std::swap(uid_, taken.uid_);
  return *this;
}

UidLease::~UidLease() {
  if (!shared_) return;
  shared_->leased.erase(uid_);
  (void)set_lock(shared_->file.get(), F_UNLCK, uid_);
}

UidPool::UidPool(std::shared_ptr<UidLease::Shared> shared) : shared_(std::move(shared)) {}

Result<UidPool> UidPool::open(uid_t first, std::uint32_t count, const std::string& lock_file) {
  const std::uint64_t end = std::uint64_t{first} + count;
  if (first < kLeastUid)
    return fail(Kind::invalid_input, fmt::format("sandbox uids begin below {}", kLeastUid));
  if (count < 2)
    return fail(Kind::invalid_input, "sandboxes need at least two uids: one of them owns workspaces");
  if (end > kInvalidUid) return fail(Kind::invalid_input, "sandbox uids end beyond the last valid one");
  if (first <= kNobody && kNobody < end) {
    return fail(Kind::invalid_input, fmt::format("sandbox uids must not contain {} (nobody)", kNobody));
  }
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::path(lock_file).parent_path();
  std::filesystem::create_directories(directory, error);
  UniqueFd file(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail_errno("open " + lock_file);
  auto shared = std::make_shared<UidLease::Shared>();
  shared->file = std::move(file);
  shared->first = first;
  shared->count = count;
  return UidPool(std::move(shared));
}

Result<UidLease> UidPool::lease() {
  UidLease::Shared& pool = *shared_;
  for (std::uint32_t tries = 1; tries < pool.count; ++tries) {
    const uid_t uid = pool.first + pool.cursor;
    pool.cursor = pool.cursor + 1 == pool.count ? 1 : pool.cursor + 1;
    if (pool.leased.contains(uid) || !set_lock(pool.file.get(), F_WRLCK, uid)) continue;
    pool.leased.insert(uid);
    return UidLease(shared_, uid);
  }
  return fail(Kind::exhausted,
              fmt::format("all {} sandbox uids from {} are in use", pool.count - 1, pool.first + 1));
}

uid_t UidPool::workspace_owner() const {
  return shared_->first;
}

}  // namespace prims::sandbox

// Host uids for sandboxes when the server is root: one per sandbox at a time, also among several servers of
// one machine.
//
// Each leased uid is a byte-range lock (at offset uid) of one file that all servers share, so a server that
// dies gives its uids back. The first uid of the range is never leased: it owns the files of workspaces.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::sandbox {

class UidPool;

/// One uid, given back on destruction. Must not be destroyed before every process of that uid has ended.
class UidLease {
 public:
  UidLease() = default;
  UidLease(UidLease&& other) noexcept;
  UidLease& operator=(UidLease&& other) noexcept;
  ~UidLease();

  uid_t uid() const { return uid_; }

 private:
  friend class UidPool;
  struct Shared;
  UidLease(std::shared_ptr<Shared> shared, uid_t uid);

  std::shared_ptr<Shared> shared_;  // the pool may go before its last lease
  uid_t uid_ = 0;
};

class UidPool {
 public:
  /// Where all servers of a machine meet.
  static constexpr const char* kLockFile = "/run/prims/uids";

  /// Refuses a range that begins below 1000, holds fewer than two uids, or ends beyond the valid ones.
  static Result<UidPool> open(uid_t first, std::uint32_t count, const std::string& lock_file = kLockFile);

  /// A uid that nobody holds; the one least recently used by this pool where there is a choice. `exhausted`
  /// when all are out.
  Result<UidLease> lease();

  uid_t workspace_owner() const;

 private:
  explicit UidPool(std::shared_ptr<UidLease::Shared> shared);

  std::shared_ptr<UidLease::Shared> shared_;
};

}  // namespace prims::sandbox

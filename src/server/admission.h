// Turns: how many programs run at once, and who is next.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "io/cancellation.h"
#include "io/event.h"
#include "io/task.h"

namespace prims::server {

/// Callers take turns, whoever of them asks more; of one caller's calls the first comes first. Bounded in how
/// many run and how many wait: when too many wait, the caller with the most calls in line loses its last one.
/// Used on the loop's thread only.
class Admission {
 public:
  using Now = std::function<Clock::time_point()>;

  Admission(std::uint32_t running, std::uint32_t waiting, Now now = Clock::now);
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  /// The right to run one program; gives it to the next in line when it goes. Must not outlive the Admission.
  class Turn {
   public:
    explicit Turn(Admission* owner) : owner_(owner), begin_(owner->now_()) {}
    Turn(Turn&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), begin_(other.begin_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (owner_ != nullptr) owner_->give_back(begin_);
    }

   private:
    Admission* owner_;
    Clock::time_point begin_;
  };

  /// Kind::exhausted when too many wait, Kind::cancelled when the caller has gone meanwhile.
  io::Task<Result<Turn>> take(std::string caller, std::shared_ptr<io::Cancellation> cancellation);

  /// When those that wait now will have had their turns, going by how long turns took lately. A second to a
  /// minute.
  Milliseconds retry_after() const;

 private:
  enum class Standing { waits, has_turn, refused };
  struct Waiter {
    io::Event called;
    Standing standing = Standing::waits;
  };
  /// The calls of one caller; never empty.
  struct Line {
    std::string caller;
    std::deque<std::shared_ptr<Waiter>> waiters;  // shared with the Tasks that wait
  };

  std::size_t waiting() const;
  bool make_room_for(const std::string& caller);
  std::shared_ptr<Waiter> join(const std::string& caller);
  void leave(const std::shared_ptr<Waiter>& waiter);
  void give_back(Clock::time_point begin);
  std::unexpected<Error> busy() const;

  const std::uint32_t running_limit_;
  const std::uint32_t waiting_limit_;
  const Now now_;
  std::uint32_t free_;
  std::deque<Line> lines_;  // the first is next
  double usual_turn_ms_ = 100;
};

}  // namespace prims::server

// Turns: how many programs run at once, and who is next.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "io/cancellation.h"
#include "io/event.h"
#include "io/task.h"

namespace prims::server {

/// First come, first served; bounded in both numbers. Used on the loop's thread only.
class Admission {
 public:
  Admission(std::uint32_t running, std::uint32_t waiting) : free_(running), waiting_limit_(waiting) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  /// The right to run one program; gives it to the next in line when it goes. Must not outlive the Admission.
  class Turn {
   public:
    explicit Turn(Admission* owner) : owner_(owner) {}
    Turn(Turn&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (owner_ != nullptr) owner_->give_back();
    }

   private:
    Admission* owner_;
  };

  /// Kind::exhausted when the line is full, Kind::cancelled when the caller has gone meanwhile.
  io::Task<Result<Turn>> take(std::shared_ptr<io::Cancellation> cancellation);

 private:
  struct Waiter {
    io::Event called;
    bool has_turn = false;
    bool gone = false;
  };

  void give_back();

  std::uint32_t free_;
  std::uint32_t waiting_limit_;
  std::deque<std::shared_ptr<Waiter>> line_;  // shared with the Task that waits
};

}  // namespace prims::server

// Ending an operation from outside. One thread (the loop's) touches it.
#pragma once

#include <functional>
#include <utility>

namespace prims::io {

class Cancellation {
 public:
  /// Idempotent.
  void request() {
    if (std::exchange(requested_, true)) return;
    if (auto action = std::exchange(action_, nullptr)) action();
  }

  bool requested() const { return requested_; }

  /// The action of the operation that runs now: called once, at request() or at once when that has happened.
  /// An empty function takes it back.
  void on_request(std::function<void()> action) {
    if (requested_ && action) {
      action();
    } else {
      action_ = std::move(action);
    }
  }

 private:
  bool requested_ = false;
  std::function<void()> action_;
};

}  // namespace prims::io

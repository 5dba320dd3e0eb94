#include "server/admission.h"

#include <fmt/format.h>

#include <algorithm>

namespace prims::server {

io::Task<Result<Admission::Turn>> Admission::take(std::shared_ptr<io::Cancellation> cancellation) {
  if (cancellation->requested()) co_return fail(Kind::cancelled, "the call was cancelled");
  if (free_ > 0) {
    --free_;
    co_return Turn(this);
  }
  if (line_.size() >= waiting_limit_) {
    co_return fail(Kind::exhausted,
                   fmt::format("{} calls are waiting already (setting queue_length)", line_.size()));
  }
  auto waiter = std::make_shared<Waiter>();
  line_.push_back(waiter);
  cancellation->on_request([waiter] {
    waiter->gone = true;
    waiter->called.set();
  });
  auto woken = co_await waiter->called.wait();
  cancellation->on_request({});
  if (waiter->has_turn) {
    Turn turn(this);
    if (waiter->gone) co_return fail(Kind::cancelled, "the call was cancelled");
    co_return turn;
  }
  std::erase(line_, waiter);
  PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
  co_return fail(Kind::cancelled, "the call was cancelled");
}

void Admission::give_back() {
  while (!line_.empty()) {
    const std::shared_ptr<Waiter> next = line_.front();
    line_.pop_front();
    if (next->gone) continue;
    next->has_turn = true;
    next->called.set();
    return;
  }
  ++free_;
}

}  // namespace prims::server

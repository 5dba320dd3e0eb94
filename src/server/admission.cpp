#include "server/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace prims::server {
namespace {

/// Weight of the newest turn in what counts as usual.
constexpr double kNewest = 0.1;
constexpr Milliseconds kLeastRetry{1'000};
constexpr Milliseconds kMostRetry{60'000};

}  // namespace

Admission::Admission(std::uint32_t running, std::uint32_t waiting, Now now)
    : running_limit_(running), waiting_limit_(waiting), now_(std::move(now)), free_(running) {}

io::Task<Result<Admission::Turn>> Admission::take(std::string caller,
                                                  std::shared_ptr<io::Cancellation> cancellation) {
  if (cancellation->requested()) co_return fail(Kind::cancelled, "the call was cancelled");
  if (free_ > 0) {
    --free_;
    co_return Turn(this);
  }
  if (waiting() >= waiting_limit_ && !make_room_for(caller)) co_return busy();
  const std::shared_ptr<Waiter> waiter = join(caller);
  cancellation->on_request([waiter] { waiter->called.set(); });
  auto woken = co_await waiter->called.wait();
  cancellation->on_request({});
  switch (waiter->standing) {
    case Standing::has_turn: {
      Turn turn(this);
      if (cancellation->requested()) co_return fail(Kind::cancelled, "the call was cancelled");
      co_return turn;
    }
    case Standing::refused:
      co_return busy();
    case Standing::waits:
      leave(waiter);
      PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
      co_return fail(Kind::cancelled, "the call was cancelled");
  }
  co_return fail(Kind::internal, "a call lost its place in line");
}

Milliseconds Admission::retry_after() const {
  const double milliseconds =
      usual_turn_ms_ * static_cast<double>(waiting() + 1) / static_cast<double>(running_limit_);
  const double bounded = std::min(milliseconds, static_cast<double>(kMostRetry.count()));
  return std::max(kLeastRetry, Milliseconds(static_cast<Milliseconds::rep>(bounded)));
}

std::size_t Admission::waiting() const {
  std::size_t count = 0;
  for (const Line& line : lines_) count += line.waiters.size();
  return count;
}

/// Refuses the last call of the caller that has the most in line, unless that is the one who asks.
bool Admission::make_room_for(const std::string& caller) {
  const auto longest = std::ranges::max_element(lines_, {}, [](const Line& l) { return l.waiters.size(); });
  if (longest == lines_.end()) return false;
  const auto own = std::ranges::find(lines_, caller, &Line::caller);
  const std::size_t mine = own == lines_.end() ? 0 : own->waiters.size();
  if (longest->waiters.size() <= mine + 1) return false;
  const std::shared_ptr<Waiter> last = longest->waiters.back();
  longest->waiters.pop_back();
  last->standing = Standing::refused;
  last->called.set();
  return true;
}

std::shared_ptr<Admission::Waiter> Admission::join(const std::string& caller) {
  auto line = std::ranges::find(lines_, caller, &Line::caller);
  if (line == lines_.end()) line = lines_.insert(lines_.end(), Line{caller, {}});
  line->waiters.push_back(std::make_shared<Waiter>());
  return line->waiters.back();
}

void Admission::leave(const std::shared_ptr<Waiter>& waiter) {
  for (Line& line : lines_) std::erase(line.waiters, waiter);
  std::erase_if(lines_, [](const Line& line) { return line.waiters.empty(); });
}

void Admission::give_back(Clock::time_point begin) {
  const std::chrono::duration<double, std::milli> took = now_() - begin;
  usual_turn_ms_ += kNewest * (took.count() - usual_turn_ms_);
  if (lines_.empty()) {
    ++free_;
    return;
  }
  Line line = std::move(lines_.front());
  lines_.pop_front();
  const std::shared_ptr<Waiter> next = line.waiters.front();
  line.waiters.pop_front();
  if (!line.waiters.empty()) lines_.push_back(std::move(line));
  next->standing = Standing::has_turn;
  next->called.set();
}

std::unexpected<Error> Admission::busy() const {
  return fail(Kind::exhausted,
              fmt::format("Busy: {} programs run and {} calls wait (settings concurrent_runs, queue_length)",
                          running_limit_, waiting()));
}

}  // namespace prims::server

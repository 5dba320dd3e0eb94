#include "io/workers.h"

#include <boost/asio/post.hpp>

namespace prims::io {

Workers::Workers(std::size_t threads, std::size_t queue_limit) : queue_limit_(queue_limit) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  threads_.clear();
}

Result<> Workers::enqueue(std::move_only_function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= queue_limit_) return fail(Kind::exhausted, "too many file operations are waiting");
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
  return {};
}

void Workers::notify(const Executor& executor, Event done) {
  boost::asio::post(executor, [done] { done.set(); });
}

void Workers::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    auto job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job();
  }
}

}  // namespace prims::io

#include "sandbox/background.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace prims::sandbox {
namespace {

/// Signals belong to the loop's thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Background::~Background() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Background::add(Job job) {
  const std::scoped_lock lock(mutex_);
  entries_.push_back({Clock::now(), std::move(job)});
  if (!thread_.joinable()) {
    const SignalsBlocked blocked;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  changed_.notify_one();
}

void Background::run(const std::stop_token& stop) {
  while (auto entry = take_due(stop)) {
    const auto pause = entry->job();
    if (!pause) continue;
    entry->due = Clock::now() + *pause;
    const std::scoped_lock lock(mutex_);
    entries_.push_back(*std::move(entry));
  }
}

std::optional<Background::Entry> Background::take_due(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto first = std::ranges::min_element(entries_, {}, &Entry::due);
    if (first == entries_.end()) {
      changed_.wait(lock, stop, [this] { return !entries_.empty(); });
    } else if (const auto due = first->due; due > Clock::now()) {
      const std::size_t known = entries_.size();
      changed_.wait_until(lock, stop, due, [this, known] { return entries_.size() != known; });
    } else {
      Entry entry = std::move(*first);
      entries_.erase(first);
      return entry;
    }
  }
  return std::nullopt;
}

}  // namespace prims::sandbox

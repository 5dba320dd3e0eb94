// One thread for work that may block and that the event loop must not wait for: removals, walks, samples.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/deadline.h"

namespace prims::sandbox {

class Background {
 public:
  /// Called on the thread. Returns the pause before it is called again, or nothing when it is done.
  using Job = std::function<std::optional<Milliseconds>()>;

  Background() = default;
  /// Waits for the job that runs now; those that wait are dropped.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Callable from any thread; the thread starts with the first job.
  void add(Job job);

 private:
  struct Entry {
    Clock::time_point due;
    Job job;
  };

  void run(const std::stop_token& stop);
  std::optional<Entry> take_due(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Entry> entries_;
  std::jthread thread_;
};

}  // namespace prims::sandbox

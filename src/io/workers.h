// A few threads for work that would block the loop: file trees, compression, name service.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/event.h"
#include "io/task.h"

namespace prims::io {

/// Must go before the loop whose Tasks use it. Its destructor waits for jobs that run and for those that are
/// queued.
class Workers {
 public:
  explicit Workers(std::size_t threads = 2, std::size_t queue_limit = 256);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs `job` (returning R or Result<R>) on a worker and resumes on the loop with Result<R>. Always waits
  /// for the end of a job that was accepted, even when the Task is asked to end, so the job may refer to what
  /// the Task owns. An exception of the job is thrown here. Kind::exhausted when the queue is full.
  template <class Job>
  auto run(Job job);

 private:
  template <class R>
  struct Answer;
  template <class Job, class R>
  Task<Result<R>> run_job(Job job);

  Result<> enqueue(std::move_only_function<void()> job);
  static void notify(const Executor& executor, Event done);
  void work();

  const std::size_t queue_limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::move_only_function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

namespace detail {
template <class T>
struct WithoutResult {
  using type = T;
};
template <class T>
struct WithoutResult<Result<T>> {
  using type = T;
};
}  // namespace detail

template <class R>
struct Workers::Answer {
  std::optional<Result<R>> value;
  std::exception_ptr failure;
  Event done;
};

template <class Job>
auto Workers::run(Job job) {
  using R = typename detail::WithoutResult<std::invoke_result_t<Job&>>::type;
  return run_job<Job, R>(std::move(job));
}

template <class Job, class R>
Task<Result<R>> Workers::run_job(Job job) {
  const Executor executor = co_await this_executor;
  auto answer = std::make_shared<Answer<R>>();
  auto work = [answer, executor, job = std::move(job)]() mutable {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Job&>>) {
        job();
        answer->value.emplace();
      } else {
        answer->value.emplace(job());
      }
    } catch (...) {
      answer->failure = std::current_exception();
    }
    // What the job captured goes here, before the Task that may own it runs again.
    [[maybe_unused]] const Job finished = std::move(job);
  };
  auto notifying = [answer, executor, work = std::move(work)]() mutable {
    work();
    notify(executor, answer->done);
  };
  PRIMS_CO_RETURN_ON_ERROR(enqueue(std::move(notifying)));
  while (!answer->done.is_set()) {
    [[maybe_unused]] auto woken = co_await answer->done.wait();
  }
  if (answer->failure) std::rethrow_exception(answer->failure);
  co_return std::move(*answer->value);
}

}  // namespace prims::io

// Hand-over between Tasks of one loop.
//
//   Event       something has happened: any number of Tasks wait for it
//   Channel<T>  a bounded queue with one or more senders and receivers
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "base/deadline.h"
#include "io/task.h"

namespace prims::io {

/// Copies share one state, so an Event may be captured by value in an action. On the loop's thread only.
class Event {
 public:
  Event();

  /// Wakes every waiter; later waits return at once until reset().
  void set() const;
  void reset() const;
  bool is_set() const;

  /// Waits for set(). Kind::timed_out, or Kind::cancelled when the waiting Task was asked to end.
  Task<Result<>> wait(Deadline deadline = Deadline::never()) const;

 private:
  struct State;
  struct Waiter;
  static Task<Result<>> wait_on(std::shared_ptr<State> state, Deadline deadline);

  std::shared_ptr<State> state_;  // shared with waiting Tasks, which may outlive this object
};

/// Must outlive the Tasks that send and receive.
template <class T>
class Channel {
 public:
  explicit Channel(std::size_t capacity) : capacity_(capacity) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// False when full or closed; the item is dropped then.
  bool try_send(T item) {
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    readable_.set();
    return true;
  }

  /// Waits for room. Kind::cancelled once closed.
  Task<Result<>> send(T item, Deadline deadline = Deadline::never()) {
    while (!closed_ && items_.size() >= capacity_) {
      writable_.reset();
      auto woken = co_await writable_.wait(deadline);
      PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
    }
    if (!try_send(std::move(item))) co_return fail(Kind::cancelled, "the channel is closed");
    co_return Result<>();
  }

  std::optional<T> try_receive() {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    writable_.set();
    return item;
  }

  /// Waits for an item. What was sent before close() is still received; then Kind::cancelled.
  Task<Result<T>> receive(Deadline deadline = Deadline::never()) {
    while (items_.empty()) {
      if (closed_) co_return fail(Kind::cancelled, "the channel is closed");
      readable_.reset();
      auto woken = co_await readable_.wait(deadline);
      PRIMS_CO_RETURN_ON_ERROR(std::move(woken));
    }
    std::optional<T> item = try_receive();
    co_return std::move(*item);
  }

  void close() {
    closed_ = true;
    readable_.set();
    writable_.set();
  }

  bool closed() const { return closed_; }
  std::size_t size() const { return items_.size(); }

 private:
  std::size_t capacity_;
  bool closed_ = false;
  std::deque<T> items_;
  Event readable_;
  Event writable_;
};

}  // namespace prims::io

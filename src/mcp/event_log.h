// What one legacy response stream said, kept for a client that lost its connection and asks for the rest.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace prims::mcp {

/// Names an event within a session: "7-3" is the third event of the seventh stream.
struct EventId {
  std::uint64_t stream = 0;
  std::uint64_t number = 0;

  static std::optional<EventId> parse(std::string_view text);
  std::string text() const;
};

class EventLog {
 public:
  enum class Keep { while_room, always };

  struct Event {
    std::uint64_t number = 0;
    std::string message;
    Keep keep = Keep::while_room;
  };

  explicit EventLog(Bytes limit = kib(256)) : limit_(limit) {}

  /// The number of the new event: 1, 2, ... When the limit is passed the oldest go that need not be kept.
  std::uint64_t append(std::string message, Keep keep);

  const std::deque<Event>& events() const { return events_; }
  std::uint64_t last() const { return last_; }

 private:
  Bytes limit_;
  Bytes held_;
  std::uint64_t last_ = 0;
  std::deque<Event> events_;
};

}  // namespace prims::mcp

#include "mcp/event_log.h"

#include <fmt/format.h>

#include <charconv>

namespace prims::mcp {

std::optional<EventId> EventId::parse(std::string_view text) {
  EventId id;
  const char* const end = text.data() + text.size();
  const auto stream = std::from_chars(text.data(), end, id.stream);
  if (stream.ec != std::errc() || stream.ptr == end || *stream.ptr != '-') return std::nullopt;
  const auto number = std::from_chars(stream.ptr + 1, end, id.number);
  if (number.ec != std::errc() || number.ptr != end) return std::nullopt;
  return id;
}

std::string EventId::text() const {
  return fmt::format("{}-{}", stream, number);
}

std::uint64_t EventLog::append(std::string message, Keep keep) {
  held_.count += message.size();
  events_.push_back({++last_, std::move(message), keep});
  for (auto it = events_.begin(); it != events_.end() && held_ > limit_;) {
    if (it->keep == Keep::always) {
      ++it;
    } else {
      held_.count -= it->message.size();
      it = events_.erase(it);
    }
  }
  return last_;
}

}  // namespace prims::mcp

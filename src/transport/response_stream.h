// What the calls of one HTTP request have said so far, read by whoever holds its connection, and the store of
// those that a legacy client may come back for.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "io/event.h"
#include "mcp/event_log.h"
#include "transport/running_call.h"

namespace prims::transport {

class ResponseStream final : public Outlet {
 public:
  ResponseStream(std::uint64_t number, std::size_t calls) : number_(number), open_calls_(calls) {}

  void progress(std::string message) override;
  void done(std::optional<std::string> response) override;
  /// A response that needed no call.
  void add_response(std::string message);

  std::uint64_t number() const { return number_; }
  const mcp::EventLog& log() const { return log_; }
  bool finished() const { return open_calls_ == 0; }
  /// Whether anything but responses has been said, which only an event stream can carry.
  bool has_progress() const { return has_progress_; }
  std::vector<std::string> responses() const;

  /// Set when there is something new to see, or whenever a reader was asked to look.
  const io::Event& changed() const { return changed_; }

  /// A new reader takes the stream over; the one before notices that its turn has passed.
  std::uint64_t take_over();
  bool is_reader(std::uint64_t turn) const { return turn == turn_; }

 private:
  std::uint64_t number_;
  std::size_t open_calls_;
  bool has_progress_ = false;
  std::uint64_t turn_ = 0;
  mcp::EventLog log_;
  io::Event changed_;
};

/// Streams by session. Finished ones go after a while, or when there are too many.
class StreamStore {
 public:
  static constexpr Milliseconds kKeepFinished{120'000};
  static constexpr std::size_t kMostFinished = 128;

  /// Unique over all sessions.
  std::uint64_t next_number() { return ++last_number_; }

  void keep(const std::string& session, std::shared_ptr<ResponseStream> stream, Clock::time_point now);
  std::shared_ptr<ResponseStream> find(const std::string& session, std::uint64_t number) const;
  void drop(const std::string& session);

 private:
  struct Kept {
    std::string session;
    std::shared_ptr<ResponseStream> stream;  // shared with its readers and its calls
    std::optional<Clock::time_point> finished;
  };
  void collect(Clock::time_point now);

  std::uint64_t last_number_ = 0;
  std::list<Kept> kept_;  ///< oldest first; short, so it is searched
};

}  // namespace prims::transport

// Legacy HTTP sessions: ids we mint, what the client agreed to with initialize, and when a session ends.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "mcp/tool.h"

namespace prims::mcp {

struct Session {
  std::string id;
  std::string version;      ///< negotiated
  std::string client_name;  ///< clientInfo.name
  std::string principal;    ///< only this one may use it
  Clock::time_point last_used;
};

class Sessions {
 public:
  struct Limits {
    std::size_t most = 2048;
    Milliseconds idle{std::chrono::hours(1)};
  };

  /// `busy` keeps a session with running calls alive; `ended` is told of every session that goes, for
  /// whatever reason.
  using Busy = std::function<bool(const std::string& id)>;
  using Ended = std::function<void(const std::string& id)>;

  Sessions(Limits limits, Busy busy) : limits_(limits), busy_(std::move(busy)) {}

  void on_end(Ended ended) { ended_ = std::move(ended); }

  /// A new session. When the table is full the one that was idle longest goes; nullptr when all are busy.
  const Session* open(std::string version, std::string client_name, const Principal& principal,
                      Clock::time_point now);

  /// nullptr when there is none of that id for this principal. A found session counts as used now.
  const Session* use(std::string_view id, const Principal& principal, Clock::time_point now);

  void close(const std::string& id);

  std::size_t size() const { return sessions_.size(); }

 private:
  void expire(Clock::time_point now);
  bool make_room();

  Limits limits_;
  Busy busy_;
  Ended ended_;
  std::map<std::string, Session, std::less<>> sessions_;
};

}  // namespace prims::mcp

// One connection to a server, whatever it runs over: a request goes out, its answer comes back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "io/cancellation.h"
#include "io/event.h"
#include "io/task.h"
#include "mcp/client_core.h"

namespace prims::upstream {

using OnProgress = std::function<void(const mcp::ReceivedProgress&)>;

struct Request {
  /// What a server hears when its answer is not waited for any longer.
  enum class GiveUp { tell_server, silently };

  mcp::Outgoing message;
  mcp::Dialect dialect;
  /// Arguments that HTTP mirrors into headers: the name after Mcp-Param-, the value encoded.
  std::vector<std::pair<std::string, std::string>> parameters;
  OnProgress on_progress;                          ///< may be empty
  std::shared_ptr<io::Cancellation> cancellation;  ///< may be null; shared with whoever may request it
  Deadline deadline;
  GiveUp give_up = GiveUp::tell_server;
};

struct Answer {
  int status = 200;                      ///< of HTTP; 200 over stdio
  std::optional<mcp::Message> response;  ///< absent when an HTTP answer held none
};

class Channel {
 public:
  virtual ~Channel() = default;

  /// Kind::timed_out, Kind::cancelled; Kind::unavailable when the connection broke before an answer.
  virtual io::Task<Result<Answer>> request(Request request) = 0;
  virtual io::Task<Result<>> notify(mcp::Outgoing message, mcp::Dialect dialect) = 0;

  /// Whether no request can succeed on it any more.
  virtual bool broken() const = 0;
  /// Ends the connection in order; requests under way fail.
  virtual io::Task<> close() = 0;
  /// The same without waiting and without grace.
  virtual void abandon() = 0;
};

/// A request whose answer is waited for; shared between who waits and who reads.
struct Pending {
  std::optional<Result<Answer>> answer;
  bool cancelled = false;
  OnProgress on_progress;
  io::Event done;
};

}  // namespace prims::upstream

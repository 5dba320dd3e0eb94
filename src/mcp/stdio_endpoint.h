// What one line on standard input leads to. One connection, which the first message that needs an era may
// pin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mcp/server_core.h"

namespace prims::mcp {

struct StdioReaction {
  enum class Shape { single, batch };

  std::vector<std::string> ready;  ///< messages to write now; of a batch: parts of its one answer
  std::vector<StartedCall> calls;
  Shape shape = Shape::single;
};

class StdioEndpoint {
 public:
  /// `core` must outlive the endpoint.
  explicit StdioEndpoint(ServerCore& core) : core_(core) {}

  StdioReaction line(std::string_view text, const Principal& principal);

  /// The answer to a line that was longer than the transport takes.
  static std::string too_long(std::size_t limit);

 private:
  void message(Message message, const Principal& principal, StdioReaction& out);
  Reply initialize(const Message& message);
  Reaction request(Message message, const Principal& principal);
  StdioReaction batch(json::Array messages, const Principal& principal);

  ServerCore& core_;
  std::optional<LegacyPeer> legacy_;  ///< after initialize; then the process is legacy for good
  bool served_modern_ = false;        ///< a modern request other than server/discover came
};

}  // namespace prims::mcp

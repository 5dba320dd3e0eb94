// The requests both transports share, one function per era: a message in, an answer or a call to run out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "mcp/headers.h"
#include "mcp/in_flight.h"
#include "mcp/message.h"
#include "mcp/tool.h"
#include "mcp/writer.h"

namespace prims::mcp {

/// A response that is ready, and the HTTP status it travels with.
struct Reply {
  std::string message;
  unsigned status = 200;
};

/// A tools/call that passed every check and is registered; whoever holds it runs the tool and writes the
/// result.
struct StartedCall {
  RequestId id;
  ToolCall call;
  const Writer* writer = nullptr;      ///< lives as long as the core
  std::optional<ProgressToken> token;  ///< present: progress may be sent
  Ticket ticket;
};

using Reaction = std::variant<Reply, StartedCall>;

/// A legacy client after initialize.
struct LegacyPeer {
  std::string scope;  ///< the session, or the stdio connection
  std::string version;
  std::string client_name;
  Principal principal;
};

struct ModernPeer {
  const Headers* headers = nullptr;  ///< over HTTP; nullptr: stdio, which has none to check
  std::optional<std::string>
      scope;  ///< in which ids can be cancelled; absent: the connection stands for its request
  Principal principal;
};

class ServerCore {
 public:
  /// Copies what it needs of the tools.
  ServerCore(ServerInfo info, std::span<const ToolDefinition> tools, InFlight::Limits limits = {});

  /// `request` is a request of that era; initialize is the endpoints' own business.
  Reaction legacy_request(Message request, const LegacyPeer& peer);
  Reaction modern_request(Message request, const ModernPeer& peer);

  /// notifications/cancelled, of either era; anything else that has no answer is accepted in silence.
  void notification(const Message& notification, const std::string& scope);

  const Writer& writer(std::string_view version) const;
  InFlight& in_flight() { return in_flight_; }

 private:
  const ToolDefinition* find_tool(std::string_view name) const;
  std::expected<ToolCall, Refusal> read_call(Message& request, CallContext context) const;
  Refusal unknown_tool(std::string_view name) const;
  std::optional<Refusal> check_modern(const Message& request, const ModernPeer& peer, ModernMeta& meta) const;
  Reaction start(Message request, CallContext context, const Writer& writer,
                 const std::optional<std::string>& scope, const Headers* headers);

  std::vector<ToolDefinition> tools_;
  std::map<std::string, std::unique_ptr<Writer>, std::less<>> writers_;  ///< by version
  InFlight in_flight_;
};

/// What initialize asks for.
struct Initialize {
  std::string version;  ///< negotiated
  std::string client_name;
};
std::expected<Initialize, Refusal> read_initialize(const Message& request);

Reply refused(const std::optional<RequestId>& id, const Refusal& refusal);

}  // namespace prims::mcp

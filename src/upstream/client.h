// A client of one MCP server, of either era, over stdio or HTTP.
//
// connect() finds out which era the server speaks. Calls may run side by side. One loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/version.h"
#include "upstream/channel.h"
#include "upstream/child_process.h"
#include "upstream/http_channel.h"

namespace prims::upstream {

enum class EraChoice { automatic, legacy, modern };

struct ClientOptions {
  EraChoice era = EraChoice::automatic;
  std::string program_version = std::string(kVersion);
  Milliseconds probe_time{5000};      ///< how long a silent stdio server may keep us wondering about its era
  Milliseconds connect_time{60'000};  ///< for the handshake as a whole
  std::size_t most_tools = 10'000;
};

struct ToolCallRequest {
  std::string tool;
  json::Object arguments;
  OnProgress on_progress;                          ///< may be empty
  std::shared_ptr<io::Cancellation> cancellation;  ///< may be null; shared with whoever may request it
  Deadline deadline;
};

class Client {
 public:
  /// Kind::unavailable with the server's own words when it cannot be started, reached or understood;
  /// Kind::denied when it wants credentials.
  static io::Task<Result<std::unique_ptr<Client>>> connect(Command command, ClientOptions options);
  static io::Task<Result<std::unique_ptr<Client>>> connect(HttpTarget target, ClientOptions options);

  /// Without close() a child is killed and a session is left behind.
  ~Client();

  const mcp::ServerDescription& server() const { return server_; }

  /// All pages. Over HTTP in the modern era tools whose x-mcp-header annotations are invalid are left out.
  io::Task<Result<std::vector<mcp::ListedTool>>> list_tools(Deadline deadline);

  /// A tool that failed is an outcome with is_error; an Error is the protocol's or the connection's. A server
  /// that has ended, or forgotten the session, is connected to again once, as long as the call cannot have
  /// begun.
  io::Task<Result<mcp::CallOutcome>> call_tool(ToolCallRequest request);

  io::Task<> close();

 private:
  enum class Transport { stdio, http };
  using Connector = std::function<Result<std::shared_ptr<Channel>>()>;
  Client(Transport transport, Connector connector, ClientOptions options);

  static io::Task<Result<std::unique_ptr<Client>>> connected(std::unique_ptr<Client> client);
  io::Task<Result<>> open();
  io::Task<Result<mcp::ProbeVerdict>> probe(Deadline deadline);
  io::Task<Result<>> initialize(Deadline deadline);
  io::Task<Result<Answer>> send(mcp::Outgoing message, Deadline deadline, Request::GiveUp give_up);
  io::Task<Result<Answer>> attempt(ToolCallRequest request);
  io::Task<Result<>> renew(std::uint64_t stale);
  Result<json::Object> result_in(const Answer& answer) const;
  bool session_may_be_lost() const {
    return transport_ == Transport::http && core_.dialect().era == mcp::Era::legacy;
  }
  bool mirrors() const { return transport_ == Transport::http && core_.dialect().era == mcp::Era::modern; }

  Transport transport_;
  Connector connector_;
  ClientOptions options_;
  mcp::ClientCore core_;
  mcp::ServerDescription server_;
  std::shared_ptr<Channel> channel_;  // shared with requests under way
  std::uint64_t handshakes_ = 0;      ///< tells whether a connection is still the one a call was sent on
  bool renewing_ = false;
  io::Event renewed_;
  /// By tool, where arguments are mirrored; empty until listed.
  std::map<std::string, json::Object> schemas_;
};

}  // namespace prims::upstream

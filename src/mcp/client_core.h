// The client's half of the protocol: what is sent in either era, and what answers mean. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mcp/message.h"
#include "mcp/protocol.h"
#include "mcp/tool.h"

namespace prims::mcp {

/// How a server is spoken to.
struct Dialect {
  Era era = Era::modern;
  std::string version = std::string(kModernVersion);
};

/// A message to send. The id is there for requests.
struct Outgoing {
  std::optional<RequestId> id;
  std::string method;
  std::string name;  ///< for Mcp-Name; empty: none
  std::string text;
};

/// What a server said about itself.
struct ServerDescription {
  Dialect dialect;
  std::string name;
  std::string version;
  std::string instructions;
};

/// A tool as listed. `definition` is what the server sent, nothing dropped.
struct ListedTool {
  std::string name;
  std::string description;
  json::Object input_schema;
  json::Object definition;
};

struct ToolPage {
  std::vector<ListedTool> tools;
  std::optional<std::string> next_cursor;
};

/// A tool's answer; `is_error` is the tool's own verdict, not a protocol error.
struct CallOutcome {
  bool is_error = false;
  json::Array content;
  std::optional<json::Value> structured;
};

/// Makes messages with ids of its own.
class ClientCore {
 public:
  explicit ClientCore(std::string program_version) : program_version_(std::move(program_version)) {}

  void speak(Dialect dialect) { dialect_ = std::move(dialect); }
  const Dialect& dialect() const { return dialect_; }

  Outgoing discover();
  Outgoing initialize();
  Outgoing initialized();
  Outgoing list_tools(const std::optional<std::string>& cursor);
  /// Asks for progress under a token that equals the request's id.
  Outgoing call_tool(const std::string& name, json::Object arguments);
  Outgoing cancelled(const RequestId& id);

 private:
  Outgoing request(std::string method, json::Object params);
  json::Object meta(bool with_progress_token) const;

  std::string program_version_;
  Dialect dialect_;
  std::int64_t last_id_ = 0;
};

/// What the answer to server/discover says about the server's era. Only a clear sign makes it modern: old
/// servers refuse the probe with all kinds of codes.
enum class ProbeVerdict { modern, legacy, incompatible };
ProbeVerdict judge_probe(const Message& response);

/// The result in a response. Errors of the server become Errors with its code and words; a modern result that
/// is not complete is unavailable, as nothing here can give a server input.
Result<json::Object> result_of(const Message& response);

/// The code of the error in a response; nullopt when it holds a result.
std::optional<std::int64_t> error_code_of(const Message& response);

ServerDescription read_discover(const json::Object& result);
Result<ServerDescription> read_initialized(const json::Object& result);
Result<ToolPage> read_tool_page(const json::Object& result);
Result<CallOutcome> read_call_outcome(const json::Object& result);

/// The token and text of a progress notification; nullopt for any other message.
struct ReceivedProgress {
  RequestId token;
  double progress = 0;
  std::string message;
};
std::optional<ReceivedProgress> read_progress(const Message& notification);

/// The answer to a request of the server: ping is answered, all else is not supported.
std::string answer_server(const Message& request);

}  // namespace prims::mcp

// Everything this server says, written as JSON text. One writer per era; each stamps what its era demands of
// a result in one place, so that no result can lack it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/progress.h"
#include "mcp/protocol.h"
#include "mcp/tool.h"

namespace prims::mcp {

struct ServerInfo {
  std::string version;       ///< of this program
  std::string instructions;  ///< how to use the server, for a model; empty: left out
};

/// One per protocol version. Answers that never vary (the tool list) are rendered once.
class Writer {
 public:
  Writer(std::string version, ServerInfo info) : version_(std::move(version)), info_(std::move(info)) {}
  virtual ~Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  const std::string& version() const { return version_; }

  /// The answer to initialize (legacy) or server/discover (modern).
  virtual std::string greeting(const RequestId& id) const = 0;
  virtual std::string tool_list(const RequestId& id) const = 0;
  virtual std::string tool_result(const RequestId& id, const ToolResult& result) const = 0;
  /// {}: the answer to ping.
  virtual std::string empty(const RequestId& id) const = 0;

  std::string progress(const ProgressToken& token, const ProgressUpdate& update) const;

 protected:
  const ServerInfo& info() const { return info_; }

 private:
  std::string version_;
  ServerInfo info_;
};

std::unique_ptr<Writer> make_legacy_writer(std::string version, ServerInfo info,
                                           std::span<const ToolDefinition> tools);
std::unique_ptr<Writer> make_modern_writer(ServerInfo info, std::span<const ToolDefinition> tools);

/// An error response; the same in both eras. Without an id only where the request's id could not be read.
std::string write_error(const std::optional<RequestId>& id, const RpcError& error);

/// serverInfo and clientInfo objects.
json::Object implementation(std::string_view version);

}  // namespace prims::mcp

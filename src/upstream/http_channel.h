// MCP over streamable HTTP, as a client.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http/client.h"
#include "http/sse.h"
#include "io/scope.h"
#include "upstream/channel.h"

namespace prims::upstream {

struct HttpTarget {
  std::string url;
  http::Headers headers;  ///< sent with every request, Authorization for example
  http::ClientOptions client;
  http::AddressFilter allow_address;
};

class HttpChannel final : public Channel, public std::enable_shared_from_this<HttpChannel> {
 public:
  static Result<std::shared_ptr<HttpChannel>> open(HttpTarget target);

  io::Task<Result<Answer>> request(Request request) override;
  io::Task<Result<>> notify(mcp::Outgoing message, mcp::Dialect dialect) override;
  bool broken() const override { return false; }
  /// A legacy session is deleted.
  io::Task<> close() override;
  void abandon() override {}

 private:
  HttpChannel(HttpTarget target, http::Url url);
  static io::Task<Result<Answer>> run_request(std::shared_ptr<HttpChannel> self, Request request);
  static io::Task<> exchange(std::shared_ptr<HttpChannel> self, Request request,
                             std::shared_ptr<Pending> pending);
  static io::Task<Result<Answer>> talk(std::shared_ptr<HttpChannel> self, Request request,
                                       std::shared_ptr<Pending> pending);
  static io::Task<Result<Answer>> read_whole(http::ClientResponse response, mcp::RequestId id);
  static io::Task<Result<Answer>> read_streams(std::shared_ptr<HttpChannel> self,
                                               http::ClientResponse response, Request request,
                                               std::shared_ptr<Pending> pending);
  /// What one event holds: the answer, or nothing yet.
  static io::Task<std::optional<Answer>> take(std::shared_ptr<HttpChannel> self, std::string data,
                                              mcp::RequestId id, mcp::Dialect dialect,
                                              std::shared_ptr<Pending> pending);
  io::Task<Result<http::ClientResponse>> send(std::string method, http::Headers headers, std::string body,
                                              Deadline deadline);
  http::Headers headers_for(const mcp::Dialect& dialect) const;
  http::Headers headers_for(const Request& request) const;
  io::Task<Result<>> post_and_forget(std::string body, mcp::Dialect dialect, std::string method);

  HttpTarget target_;
  http::Url url_;
  http::Client client_;
  std::optional<std::string> session_;  ///< legacy, from the answer to initialize
  mcp::Dialect session_dialect_;
};

}  // namespace prims::upstream

// Answers one request from inside the sandbox with what the outside says. Internal to this folder.
#pragma once

#include <memory>
#include <string>

#include "egress/gate.h"
#include "http/client.h"
#include "http/server.h"

namespace prims::egress {

class Relay {
 public:
  /// `local_origin`: how the sandbox reaches the broker, "http://127.0.0.1:8080".
  Relay(BrokerOptions options, std::string local_origin, std::shared_ptr<Gate> gate);

  static io::Task<> handle(std::shared_ptr<Relay> self, http::Request request, http::Responder responder);

 private:
  /// A response and where it came from after redirects.
  struct Fetched {
    http::ClientResponse response;
    http::Url url;
  };

  static io::Task<Result<>> answer(std::shared_ptr<Relay> self, http::Request request,
                                   http::Responder responder);
  static io::Task<Result<Fetched>> fetch(std::shared_ptr<Relay> self, http::Url url, std::string method,
                                         http::Headers headers, Deadline deadline);
  static io::Task<Result<>> send_page(std::shared_ptr<Relay> self, Fetched fetched, http::Responder responder,
                                      Deadline deadline);
  static io::Task<Result<>> send_page_head(Fetched fetched, http::Responder responder);
  static io::Task<Result<>> stream(std::shared_ptr<Relay> self, http::ClientResponse response,
                                   http::Responder responder, Deadline deadline);
  Result<std::string> rewrite(std::string page, const Fetched& fetched) const;
  Deadline stall(Deadline limit) const;

  BrokerOptions options_;
  std::string local_origin_;
  std::shared_ptr<Gate> gate_;  // shared with the Broker, whose report() other threads call
  http::Client client_;
};

}  // namespace prims::egress

#include "egress/broker.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "base/log.h"
#include "egress/gate.h"
#include "egress/relay.h"
#include "http/server.h"
#include "io/loop.h"

namespace prims::egress {
namespace {

/// A name look-up that hangs in the C library holds its loop up; nobody waits longer than this for it.
constexpr Milliseconds kStopTime{250};

/// Belongs to the broker's thread, which also destroys it.
struct Running {
  io::Loop loop;
  std::shared_ptr<Relay> relay;  // shared with requests under way
  std::unique_ptr<http::Server> server;
};

Result<std::uint16_t> port_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return fail_errno("getsockname");
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  return fail(Kind::invalid_input, "the broker's socket is not a TCP socket");
}

void serve(std::shared_ptr<Running> running, std::promise<void> finished) {
  try {
    running->loop.run();
  } catch (const std::exception& error) {
    log::error("the egress broker ended: {}", error.what());
  }
  running.reset();
  finished.set_value();
}

}  // namespace

class Broker::Impl {
 public:
  std::string local_origin;
  std::shared_ptr<Gate> gate;        // shared with the relay on the other thread
  std::shared_ptr<Running> running;  // given up by stop(), so that the thread has the last reference
  std::thread thread;
  std::future<void> finished;
};

Result<std::unique_ptr<Broker>> Broker::start(UniqueFd listening, BrokerOptions options) {
  PRIMS_ASSIGN_OR_RETURN(const std::uint16_t port, port_of(listening.get()));
  auto impl = std::make_unique<Impl>();
  impl->local_origin = fmt::format("http://127.0.0.1:{}", port);
  impl->gate = std::make_shared<Gate>(options);
  http::ServerLimits limits;
  limits.body = kib(1);
  limits.connections = limits.connections_per_peer = options.connections;
  auto running = std::make_shared<Running>();
  running->relay = std::make_shared<Relay>(std::move(options), impl->local_origin, impl->gate);
  auto handler = [relay = running->relay](http::Request request, http::Responder responder) {
    return Relay::handle(relay, std::move(request), std::move(responder));
  };
  PRIMS_ASSIGN_OR_RETURN(running->server, http::Server::adopt(running->loop.executor(), std::move(listening),
                                                              limits, std::move(handler)));
  std::promise<void> finished;
  impl->finished = finished.get_future();
  impl->running = running;
  impl->thread = std::thread(serve, std::move(running), std::move(finished));
  return std::unique_ptr<Broker>(new Broker(std::move(impl)));
}

Broker::Broker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Broker::~Broker() {
  stop();
}

void Broker::stop() {
  if (!impl_->thread.joinable()) return;
  // Held here too, because the loop may end before post() has returned.
  std::shared_ptr<Running> running = std::move(impl_->running);
  running->loop.post([halting = running] {
    halting->server.reset();
    halting->loop.stop();
  });
  running.reset();
  if (impl_->finished.wait_for(kStopTime) == std::future_status::ready) {
    impl_->thread.join();
  } else {
    impl_->thread.detach();
  }
}

std::string Broker::index_url(std::size_t index) const {
  return fmt::format("{}/index/{}/", impl_->local_origin, index);
}

BrokerReport Broker::report() const {
  return impl_->gate->report();
}

}  // namespace prims::egress

#include "launcher/first_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "launcher/channel.h"
#include "launcher/kernel.h"
#include "launcher/lock_down.h"
#include "launcher/newborn.h"

namespace prims::launcher {
namespace {

/// The way out of this network namespace: who holds the listening socket decides what comes of a connection.
Failure pass_broker_socket(std::uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  LAUNCHER_TRY(check("broker socket", listener));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  LAUNCHER_TRY(check("broker bind", bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address)));
  LAUNCHER_TRY(check("broker listen", listen(listener, 128)));
  wire::Notice notice;
  notice.kind = wire::NoticeKind::broker;
  LAUNCHER_TRY(send_notice(wire::kInitFd, notice, listener));
  close(listener);
  return {};
}

}  // namespace

/// A fresh program: nothing of the launcher's memory, descriptors or names stays.
Failure execute_init(int program) {
  LAUNCHER_TRY(check("close descriptors", kernel::close_range(0, ~0U, kernel::kCloseRangeCloexec)));
  LAUNCHER_TRY(check("keep the init socket", fcntl(wire::kInitFd, F_SETFD, 0)));
  LAUNCHER_TRY(check("keep the spec", fcntl(wire::kSpecFd, F_SETFD, 0)));
  char name[] = "prims-init";
  char* arguments[] = {name, nullptr};
  char* environment[] = {nullptr};
  return check("exec init", syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH));
}

Failure become_init(const FirstProcess& self) {
  const wire::Spec& spec = self.spec;
  LAUNCHER_TRY(enter_limits(wire::kFirstEntryFd, spec.settings.entries));
  LAUNCHER_TRY(wait_at(self.barrier));
  LAUNCHER_TRY(settle_in(spec.settings.inside_id, spec.hostname));
  if (spec.has(wire::kLoopbackBroker)) LAUNCHER_TRY(pass_broker_socket(spec.settings.broker_port));
  LAUNCHER_TRY(build_root(spec, self.trees));
  LAUNCHER_TRY(drop_privileges(spec));
  return execute_init(self.program);
}

}  // namespace prims::launcher

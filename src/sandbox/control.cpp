#include "sandbox/control.h"

#include <sys/socket.h>

#include <cstring>
#include <vector>

namespace prims::sandbox {
namespace {

namespace wire = launcher::wire;

UniqueFd first_descriptor(const msghdr& header) {
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights == nullptr || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
  return UniqueFd(fd);
}

}  // namespace

io::Task<Result<Received>> Control::receive() {
  for (;;) {
    auto taken = take();
    PRIMS_CO_ASSIGN_OR_RETURN(std::optional<Received> received, std::move(taken));
    if (received) co_return std::move(*received);
    auto ready = co_await stream_.readable(Deadline::never());
    PRIMS_CO_RETURN_ON_ERROR(std::move(ready));
  }
}

Result<std::optional<Received>> Control::take() {
  Received received;
  iovec part{&received.notice, sizeof received.notice};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] =
      {};  // room for one: the kernel drops what does not fit
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(stream_.fd(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got < 0) return fail_errno("receive from the launcher");
  received.descriptor = first_descriptor(header);
  if (got == 0) return fail(Kind::unavailable, "the launcher has closed its socket");
  if (got != sizeof received.notice) return fail(Kind::internal, "the launcher sent no notice");
  received.notice.step[sizeof received.notice.step - 1] = '\0';
  return received;
}

Result<> Control::send(std::string_view message, std::span<const int> descriptors) {
  iovec part{const_cast<char*>(message.data()), message.size()};
  std::vector<char> control(descriptors.empty() ? 0 : CMSG_SPACE(descriptors.size_bytes()));
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (::sendmsg(stream_.fd(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return fail_errno("send to the launcher");
  return {};
}

}  // namespace prims::sandbox

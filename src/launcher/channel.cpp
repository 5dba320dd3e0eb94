#include "launcher/channel.h"

#include <sys/socket.h>

namespace prims::launcher {

Failure send_notice(int socket, const wire::Notice& notice, int descriptor) {
  iovec part{const_cast<wire::Notice*>(&notice), sizeof notice};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  return check("send", sendmsg(socket, &message, MSG_NOSIGNAL));
}

void send_failure(int socket, Failure failure, int value) {
  wire::Notice notice;
  notice.kind = wire::NoticeKind::failed;
  notice.value = value;
  notice.error = failure.error;
  std::strncpy(notice.step, failure.step, sizeof notice.step - 1);
  static_cast<void>(send_notice(socket, notice));
}

Failure receive(int socket, char* buffer, std::size_t size, Message& message) {
  iovec part{buffer, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof message.descriptors)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t received;
  do {
    received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  LAUNCHER_TRY(check("receive", received));
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return Failure{"receive", EMSGSIZE};
  message.data = std::string_view(buffer, static_cast<std::size_t>(received));
  message.descriptor_count = 0;
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
    message.descriptor_count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(message.descriptors, CMSG_DATA(rights), message.descriptor_count * sizeof(int));
  }
  return {};
}

}  // namespace prims::launcher

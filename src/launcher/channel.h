// Messages over SOCK_SEQPACKET sockets, with descriptors.
#pragma once

#include <cstddef>
#include <string_view>

#include "launcher/failure.h"
#include "launcher/wire.h"

namespace prims::launcher {

/// `descriptor` travels along when it is not -1.
Failure send_notice(int socket, const wire::Notice& notice, int descriptor = -1);

/// Tells the other side which step failed. Best effort: a peer that is gone needs no telling.
void send_failure(int socket, Failure failure, int value = 0);

/// One message with its descriptors, all close-on-exec.
struct Message {
  std::string_view data;  ///< empty: the other side has closed
  int descriptors[wire::kMaxDescriptors] = {};
  std::size_t descriptor_count = 0;
};

/// Waits for one message. `buffer` must live as long as the message.
Failure receive(int socket, char* buffer, std::size_t size, Message& message);

}  // namespace prims::launcher

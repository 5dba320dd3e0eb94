#include "http/address.h"

#include <arpa/inet.h>

namespace prims::http {

std::string to_string(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const int family = address.family == Address::Family::v4 ? AF_INET : AF_INET6;
  ::inet_ntop(family, address.bytes.data(), text, sizeof text);
  return text;
}

}  // namespace prims::http

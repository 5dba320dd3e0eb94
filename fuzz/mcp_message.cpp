// JSON-RPC messages of any peer.
#include "mcp/message.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto value = prims::mcp::read_json(prims::fuzz::text_of(data, size));
  if (!value) return 0;
  const auto message = prims::mcp::read_message(*std::move(value));
  if (message && message->kind == prims::mcp::Message::Kind::request) {
    prims::fuzz::require(message->id.has_value() && !message->method.empty());
  }
  return 0;
}

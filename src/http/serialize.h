// Heads of messages as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace prims::http {

/// How the receiver finds the end of a body.
enum class Framing { length, chunked, until_close, none };

struct HeadOptions {
  Framing framing = Framing::length;
  std::uint64_t length = 0;  ///< with Framing::length
  bool close = false;        ///< "Connection: close"
};

/// Status line and fields with the empty line. Framing fields of the caller's own are dropped.
std::string response_head(int status, const Headers& headers, HeadOptions options);

/// Request line and fields with the empty line; Host comes first.
std::string request_head(std::string_view method, std::string_view target, std::string_view host,
                         const Headers& headers, std::optional<std::uint64_t> length);

/// The size line that goes before a chunk.
std::string chunk_head(std::size_t size);

}  // namespace prims::http

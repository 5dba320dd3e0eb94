// The server's end of a socket to the launcher or to init: notices come in, requests go out.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "io/stream.h"
#include "io/task.h"
#include "launcher/wire.h"

namespace prims::sandbox {

struct Received {
  launcher::wire::Notice notice;
  UniqueFd descriptor;  ///< came along, or invalid
};

class Control {
 public:
  Control() = default;
  explicit Control(UniqueFd socket) : stream_(std::move(socket)) {}

  /// The next notice. Kind::unavailable when the other side has closed, Kind::internal for anything that is
  /// not a notice. One Task at a time; this object must outlive it.
  io::Task<Result<Received>> receive();

  /// Sends at once or fails: the other side takes every message before it needs the next.
  Result<> send(std::string_view message, std::span<const int> descriptors = {});

 private:
  Result<std::optional<Received>> take();  // nothing: not yet

  io::Stream stream_;
};

}  // namespace prims::sandbox

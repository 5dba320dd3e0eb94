// Frames on the private descriptor: docs/guest-protocol.md. What comes from the guest is untrusted, bounded
// and may be anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "python/runner.h"

namespace prims::python {

inline constexpr std::uint8_t kProtocolVersion = 1;
/// The largest payload that is taken from a guest.
inline constexpr std::size_t kMaxGuestPayload = std::size_t{2} << 20;

enum class FrameType : std::uint8_t {
  hello = 1,
  run = 2,
  result = 3,
  refused = 4,
  tool_call = 5,
  tool_answer = 6
};

struct Message {
  FrameType type = FrameType::hello;  ///< from a guest possibly none of the enumerators
  std::uint64_t id = 0;
  json::Object fields;
  std::string bytes;  ///< raw bytes after the JSON text
};

std::string encode(const Message& message);

/// Takes a stream apart. After an Error it stays failed: nothing can be told about what follows.
class MessageReader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }

  /// The next complete message; nullopt when more bytes are needed.
  Result<std::optional<Message>> next();

 private:
  Result<Message> read(std::string_view payload, FrameType type, std::uint64_t id);

  std::string buffer_;
  bool failed_ = false;
};

/// The call, for one `run` frame.
struct Call {
  std::string code;
  std::string file;  ///< where the guest writes the code, inside
  std::string workspace;
  std::vector<std::string> arguments;
};

Message run_message(std::uint64_t id, Call call);

struct GuestResult {
  std::optional<PythonError> error;
  std::optional<PythonValue> value;
};

/// Members that are missing or of another type than expected count as absent.
GuestResult read_result(const json::Object& fields);

}  // namespace prims::python

#include "python/protocol.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace prims::python {
namespace {

constexpr std::size_t kHeaderSize = 16;
constexpr std::size_t kLengthSize = 4;
constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxFrames = 100;

void put(std::string& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t get(std::string_view in, std::size_t offset, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(in[offset + i])) << (8 * i);
  }
  return value;
}

std::string text_or_empty(const json::Object& object, std::string_view key) {
  return json::string_field(object, key).value_or(std::string());
}

std::optional<int> line_field(const json::Object& object) {
  const auto line = json::integer_field(object, "line");
  if (!line || *line < 0 || *line > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*line);
}

std::vector<Frame> read_frames(const json::Array& array) {
  std::vector<Frame> frames;
  for (const json::Value& item : array) {
    if (!item.is_object() || frames.size() == kMaxFrames) continue;
    const json::Object& object = item.get_object();
    frames.push_back(
        {line_field(object).value_or(0), text_or_empty(object, "name"), text_or_empty(object, "file")});
  }
  return frames;
}

PythonError read_error(const json::Object& object) {
  PythonError error;
  error.type = text_or_empty(object, "type");
  error.message = text_or_empty(object, "message");
  error.line = line_field(object);
  if (const json::Array* frames = json::array_field(object, "frames")) error.frames = read_frames(*frames);
  error.traceback = text_or_empty(object, "traceback");
  return error;
}

}  // namespace

std::string encode(const Message& message) {
  const std::string text = json::write(message.fields);
  std::string out;
  out.reserve(kHeaderSize + kLengthSize + text.size() + message.bytes.size());
  put(out, kLengthSize + text.size() + message.bytes.size(), 4);
  put(out, kProtocolVersion, 1);
  put(out, static_cast<std::uint64_t>(message.type), 1);
  put(out, 0, 2);
  put(out, message.id, 8);
  put(out, text.size(), kLengthSize);
  out += text;
  out += message.bytes;
  return out;
}

Result<std::optional<Message>> MessageReader::next() {
  if (failed_) return fail(Kind::invalid_input, "an earlier frame was malformed");
  if (buffer_.size() < kHeaderSize) return std::nullopt;
  failed_ = true;
  const auto size = static_cast<std::size_t>(get(buffer_, 0, 4));
  const std::uint64_t version = get(buffer_, 4, 1);
  if (version != kProtocolVersion) {
    return fail(Kind::invalid_input,
                fmt::format("the guest speaks protocol {}, this program {}", version, kProtocolVersion));
  }
  if (get(buffer_, 6, 2) != 0) return fail(Kind::invalid_input, "a frame has unknown flags");
  if (size < kLengthSize || size > kMaxGuestPayload) {
    return fail(Kind::invalid_input, fmt::format("a frame announces {} bytes", size));
  }
  if (buffer_.size() < kHeaderSize + size) {
    failed_ = false;
    return std::nullopt;
  }
  const std::string_view payload = std::string_view(buffer_).substr(kHeaderSize, size);
  PRIMS_ASSIGN_OR_RETURN(Message message,
                         read(payload, static_cast<FrameType>(get(buffer_, 5, 1)), get(buffer_, 8, 8)));
  buffer_.erase(0, kHeaderSize + size);
  failed_ = false;
  return message;
}

Result<Message> MessageReader::read(std::string_view payload, FrameType type, std::uint64_t id) {
  const auto length = static_cast<std::size_t>(get(payload, 0, kLengthSize));
  payload.remove_prefix(kLengthSize);
  if (length > payload.size())
    return fail(Kind::invalid_input, "the JSON text of a frame is longer than the frame");
  PRIMS_ASSIGN_OR_RETURN(json::Value value, json::parse(payload.substr(0, length), kMaxDepth));
  if (!value.is_object()) return fail(Kind::invalid_input, "the JSON text of a frame is no object");
  return Message{type, id, std::move(value.get_object()), std::string(payload.substr(length))};
}

Message run_message(std::uint64_t id, Call call) {
  json::Object fields;
  fields["file"] = call.file;
  fields["workspace"] = call.workspace;
  json::Array& arguments = fields["arguments"].emplace_array();
  for (const std::string& argument : call.arguments) arguments.emplace_back(argument);
  return Message{FrameType::run, id, std::move(fields), std::move(call.code)};
}

GuestResult read_result(const json::Object& fields) {
  GuestResult result;
  if (const json::Object* error = json::object_field(fields, "error")) result.error = read_error(*error);
  if (const json::Object* value = json::object_field(fields, "value")) {
    result.value = PythonValue{text_or_empty(*value, "text"), text_or_empty(*value, "type")};
  }
  return result;
}

}  // namespace prims::python

#include "mcp/message.h"

#include <utility>

namespace prims::mcp {
namespace {

std::unexpected<Unreadable> unreadable(std::optional<RequestId> id, RpcCode code, std::string message) {
  return std::unexpected(Unreadable{std::move(id), RpcError{code, std::move(message), std::nullopt}});
}

std::expected<Message, Unreadable> read_response(json::Object object, std::optional<RequestId> id) {
  const bool has_result = object.contains("result");
  const bool has_error = object.contains("error");
  if (has_result == has_error) {
    return unreadable(std::move(id), RpcCode::invalid_request,
                      "a message has a method, a result or an error");
  }
  // An error about a request that could not be read has no id; a result always answers something.
  if (!id && has_result)
    return unreadable(std::nullopt, RpcCode::invalid_request, "a result needs the id it answers");
  Message message;
  message.kind = Message::Kind::response;
  message.id = std::move(id);
  message.body = std::move(object);
  return message;
}

}  // namespace

std::expected<json::Value, RpcError> read_json(std::string_view text) {
  auto value = json::parse(text);
  if (!value) return std::unexpected(RpcError{RpcCode::parse_error, value.error().message, std::nullopt});
  return *std::move(value);
}

std::expected<Message, Unreadable> read_message(json::Value value) {
  if (!value.is_object()) {
    return unreadable(std::nullopt, RpcCode::invalid_request, "a message is a JSON object");
  }
  json::Object& object = value.get_object();
  std::optional<RequestId> id;
  const json::Value* given_id = json::find(object, "id");
  if (given_id != nullptr) id = RequestId::from(*given_id);
  const json::Value* method = json::find(object, "method");
  const bool id_is_missing_or_good = given_id == nullptr || id || (method == nullptr && given_id->is_null());
  if (!id_is_missing_or_good) {
    return unreadable(std::nullopt, RpcCode::invalid_request,
                      "id must be an integer or a string of at most 1024 bytes; null is no id");
  }
  if (json::string_field(object, "jsonrpc") != "2.0") {
    return unreadable(std::move(id), RpcCode::invalid_request, "jsonrpc must be \"2.0\"");
  }
  if (method == nullptr) return read_response(std::move(object), std::move(id));
  if (!method->is_string()) {
    return unreadable(std::move(id), RpcCode::invalid_request, "method must be a string");
  }
  Message message;
  message.kind = id ? Message::Kind::request : Message::Kind::notification;
  message.method = json::text(method->get_string());
  if (json::Value* params = object.if_contains("params")) {
    if (!params->is_object()) {
      return unreadable(std::move(id), RpcCode::invalid_params, "params must be an object");
    }
    message.params = std::move(params->get_object());
  }
  message.id = std::move(id);
  return message;
}

}  // namespace prims::mcp

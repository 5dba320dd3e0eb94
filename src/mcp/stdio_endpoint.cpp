#include "mcp/stdio_endpoint.h"

#include <fmt/format.h>

namespace prims::mcp {
namespace {

constexpr std::size_t kLargestBatch = 64;
/// The one client of a standard input; names its calls and its workspace.
constexpr std::string_view kScope = "stdio";

}  // namespace

std::string StdioEndpoint::too_long(std::size_t limit) {
  return write_error(
      std::nullopt,
      RpcError{RpcCode::parse_error, fmt::format("the line is longer than {} bytes and was skipped", limit),
               std::nullopt});
}

StdioReaction StdioEndpoint::line(std::string_view text, const Principal& principal) {
  StdioReaction out;
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) return out;
  auto value = read_json(text);
  if (!value) {
    out.ready.push_back(write_error(std::nullopt, value.error()));
    return out;
  }
  if (value->is_array()) return batch(std::move(value->get_array()), principal);
  auto read = read_message(*std::move(value));
  if (!read) {
    out.ready.push_back(write_error(read.error().id, read.error().error));
    return out;
  }
  message(*std::move(read), principal, out);
  return out;
}

StdioReaction StdioEndpoint::batch(json::Array messages, const Principal& principal) {
  StdioReaction out;
  if (!legacy_ || legacy_->version != kBatchVersion || messages.empty() || messages.size() > kLargestBatch) {
    const auto refusal = refuse(RpcCode::invalid_request,
                                fmt::format("one message per line; batches (of 1 to {}) exist in {} only",
                                            kLargestBatch, kBatchVersion));
    out.ready.push_back(write_error(std::nullopt, refusal.error));
    return out;
  }
  out.shape = StdioReaction::Shape::batch;
  for (json::Value& value : messages) {
    auto read = read_message(std::move(value));
    if (!read) {
      out.ready.push_back(write_error(read.error().id, read.error().error));
    } else {
      message(*std::move(read), principal, out);
    }
  }
  return out;
}

void StdioEndpoint::message(Message message, const Principal& principal, StdioReaction& out) {
  if (message.kind != Message::Kind::request) {
    core_.notification(message, std::string(kScope));
    return;
  }
  Reaction reaction = request(std::move(message), principal);
  if (auto* reply = std::get_if<Reply>(&reaction)) {
    out.ready.push_back(std::move(reply->message));
  } else {
    out.calls.push_back(std::get<StartedCall>(std::move(reaction)));
  }
}

Reaction StdioEndpoint::request(Message message, const Principal& principal) {
  if (legacy_) {
    if (message.method == "initialize") {
      return refused(message.id, refuse(RpcCode::invalid_request, "initialize came before; it is sent once"));
    }
    return core_.legacy_request(std::move(message), *legacy_);
  }
  if (era_of(message, std::nullopt) == Era::modern) {
    served_modern_ |= message.method != "server/discover";
    return core_.modern_request(std::move(message), ModernPeer{nullptr, std::string(kScope), principal});
  }
  if (message.method == "ping") return Reply{core_.writer(kLatestLegacyVersion).empty(*message.id)};
  if (message.method != "initialize") {
    return refused(
        message.id,
        refuse(RpcCode::invalid_params,
               fmt::format("send initialize first, or name the version in _meta as \"{}\"", kMetaVersion)));
  }
  auto reply = initialize(message);
  if (legacy_) legacy_->principal = principal;
  return reply;
}

Reply StdioEndpoint::initialize(const Message& message) {
  auto wanted = read_initialize(message);
  if (!wanted) return refused(message.id, wanted.error());
  if (served_modern_) {
    return refused(message.id,
                   unsupported_version(json::string_field(message.params, "protocolVersion").value_or("")));
  }
  legacy_ = LegacyPeer{std::string(kScope), wanted->version, wanted->client_name, Principal{}};
  return Reply{core_.writer(wanted->version).greeting(*message.id)};
}

}  // namespace prims::mcp

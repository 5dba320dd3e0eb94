#include "mcp/protocol.h"

#include <fmt/format.h>

#include <algorithm>

namespace prims::mcp {
namespace {

const json::Value* meta_member(const Message& message, std::string_view key) {
  const json::Object* meta = json::object_field(message.params, "_meta");
  return meta == nullptr ? nullptr : json::find(*meta, key);
}

}  // namespace

bool is_legacy_version(std::string_view version) {
  return version != kModernVersion && std::ranges::find(kVersions, version) != kVersions.end();
}

std::string_view negotiate_legacy(std::string_view requested) {
  return is_legacy_version(requested) ? *std::ranges::find(kVersions, requested) : kLatestLegacyVersion;
}

bool has_modern_claim(const Message& message) {
  return meta_member(message, kMetaVersion) != nullptr;
}

Era era_of(const Message& message, std::optional<std::string_view> version_header) {
  if (has_modern_claim(message)) return Era::modern;
  if (message.kind == Message::Kind::request && message.method == "initialize") return Era::legacy;
  return version_header == kModernVersion ? Era::modern : Era::legacy;
}

std::expected<ModernMeta, Refusal> read_modern_meta(const Message& message) {
  ModernMeta meta;
  const json::Value* version = meta_member(message, kMetaVersion);
  if (version == nullptr || !version->is_string()) {
    return std::unexpected(
        refuse(RpcCode::invalid_params, fmt::format("_meta needs \"{}\", a string", kMetaVersion)));
  }
  meta.version = json::text(version->get_string());
  const json::Value* capabilities = meta_member(message, kMetaCapabilities);
  if (capabilities == nullptr || !capabilities->is_object()) {
    return std::unexpected(
        refuse(RpcCode::invalid_params, fmt::format("_meta needs \"{}\", an object", kMetaCapabilities)));
  }
  meta.capabilities = capabilities->get_object();
  if (const json::Value* info = meta_member(message, kMetaClientInfo); info != nullptr && info->is_object()) {
    meta.client_name = json::string_field(info->get_object(), "name").value_or("");
  }
  if (meta.version != kModernVersion) return std::unexpected(unsupported_version(meta.version));
  return meta;
}

std::expected<std::optional<ProgressToken>, Refusal> read_progress_token(const Message& message) {
  const json::Value* given = meta_member(message, "progressToken");
  if (given == nullptr || given->is_null()) return std::nullopt;
  auto token = ProgressToken::from(*given);
  if (!token) {
    return std::unexpected(refuse(RpcCode::invalid_params, "progressToken must be an integer or a string"));
  }
  return token;
}

Refusal unsupported_version(std::string_view requested) {
  Refusal refusal = refuse(RpcCode::unsupported_protocol_version,
                           fmt::format("protocol version {} is not spoken in this way here", requested));
  json::Array supported;
  for (const std::string_view version : kVersions) supported.emplace_back(version);
  refusal.error.data = json::Object{{"supported", std::move(supported)}, {"requested", requested}};
  return refusal;
}

}  // namespace prims::mcp

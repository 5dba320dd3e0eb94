// The revisions of MCP this program speaks, and the one place that tells from a message which era it belongs
// to.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/message.h"
#include "mcp/tool.h"

namespace prims::mcp {

inline constexpr std::string_view kModernVersion = "2026-07-28";
inline constexpr std::string_view kLatestLegacyVersion = "2025-11-25";
/// Newest first. Revisions are dates, so plain comparison orders them.
inline constexpr std::array<std::string_view, 5> kVersions = {kModernVersion, kLatestLegacyVersion,
                                                              "2025-06-18", "2025-03-26", "2024-11-05"};
inline constexpr std::string_view kBatchVersion = "2025-03-26";  ///< the only one with JSON-RPC batches

inline constexpr std::string_view kMetaVersion = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kMetaCapabilities = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kMetaClientInfo = "io.modelcontextprotocol/clientInfo";
inline constexpr std::string_view kMetaServerInfo = "io.modelcontextprotocol/serverInfo";

bool is_legacy_version(std::string_view version);

/// initialize is answered with the version asked for where we speak it, else with our latest.
std::string_view negotiate_legacy(std::string_view requested);

/// Whether the message names a protocol version in its _meta, which only modern ones do.
bool has_modern_claim(const Message& message);

/// Of a message that came over HTTP: `version_header` is MCP-Protocol-Version, absent when it was not sent.
/// The body decides; the header counts only where the body is silent, and never makes an initialize modern.
Era era_of(const Message& message, std::optional<std::string_view> version_header);

/// What every modern request says about itself.
struct ModernMeta {
  std::string version;
  json::Object capabilities;
  std::string client_name;
};

/// The _meta of a modern request, or why it is refused (-32602 for a missing field, -32022 for a version).
std::expected<ModernMeta, Refusal> read_modern_meta(const Message& message);

/// The progress token of a request, of either era. A token of another type than string or integer is refused.
std::expected<std::optional<ProgressToken>, Refusal> read_progress_token(const Message& message);

/// -32022 with what is spoken here.
Refusal unsupported_version(std::string_view requested);

}  // namespace prims::mcp

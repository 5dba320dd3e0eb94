#include <fmt/format.h>

#include "mcp/writer.h"
#include "mcp/writer_parts.h"

namespace prims::mcp {
namespace {

// What we list is the same for every caller and changes only with the program.
constexpr std::string_view kCachedFiveMinutes = R"(,"ttlMs":300000,"cacheScope":"public")";
constexpr std::string_view kNotCached = "";

class ModernWriter final : public Writer {
 public:
  ModernWriter(ServerInfo server, std::span<const ToolDefinition> tools)
      : Writer(std::string(kModernVersion), std::move(server)),
        stamp_(fmt::format(R"("resultType":"complete","_meta":{})",
                           json::write(json::Object{{kMetaServerInfo, implementation(info().version)}}))),
        tools_(fmt::format(R"("tools":{})", parts::tool_array(tools, version()))) {}

  std::string greeting(const RequestId& id) const override {
    json::Array versions;
    for (const std::string_view version : kVersions) versions.emplace_back(version);
    json::Object capabilities{{"tools", json::Object()}};
    std::string members = fmt::format(R"("supportedVersions":{},"capabilities":{})", json::write(versions),
                                      json::write(capabilities));
    if (!info().instructions.empty()) {
      members += fmt::format(R"(,"instructions":{})", json::write(json::Value(info().instructions)));
    }
    return stamped(id, members, kCachedFiveMinutes);
  }

  std::string tool_list(const RequestId& id) const override {
    return stamped(id, tools_, kCachedFiveMinutes);
  }

  std::string tool_result(const RequestId& id, const ToolResult& result) const override {
    return stamped(id, parts::tool_result_members(result, version()), kNotCached);
  }

  std::string empty(const RequestId& id) const override {
    return parts::response(id, fmt::format("{{{}}}", stamp_));
  }

 private:
  std::string stamped(const RequestId& id, std::string_view members, std::string_view caching) const {
    return parts::response(id, fmt::format("{{{}{},{}}}", members, caching, stamp_));
  }

  std::string stamp_;
  std::string tools_;
};

}  // namespace

std::unique_ptr<Writer> make_modern_writer(ServerInfo info, std::span<const ToolDefinition> tools) {
  return std::make_unique<ModernWriter>(std::move(info), tools);
}

}  // namespace prims::mcp

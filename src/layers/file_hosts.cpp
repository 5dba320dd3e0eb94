#include "layers/file_hosts.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "base/files.h"
#include "json/json.h"

namespace prims::layers {
namespace {

constexpr std::int64_t kLargestPort = 65535;

std::uint16_t port_field(const json::Object& object, std::string_view key) {
  const auto port = json::integer_field(object, key).value_or(0);
  return port > 0 && port <= kLargestPort ? static_cast<std::uint16_t>(port) : std::uint16_t{0};
}

}  // namespace

std::vector<egress::FileHost> read_file_hosts(const std::filesystem::path& file) {
  std::vector<egress::FileHost> hosts;
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  const auto parsed = json::parse(std::move(text).str());
  if (!parsed || !parsed->is_array()) return hosts;
  for (const auto& item : parsed->as_array()) {
    if (!item.is_object()) continue;
    const auto& object = item.as_object();
    hosts.push_back({.scheme = json::string_field(object, "scheme").value_or(""),
                     .host = json::string_field(object, "host").value_or(""),
                     .port = port_field(object, "port"),
                     .index_address = json::string_field(object, "index_address").value_or(""),
                     .index_port = port_field(object, "index_port")});
  }
  return hosts;
}

Result<> write_file_hosts(const std::filesystem::path& file, const std::vector<egress::FileHost>& hosts) {
  json::Array list;
  for (const auto& host : hosts) {
    list.push_back(json::Object{{"scheme", host.scheme},
                                {"host", host.host},
                                {"port", host.port},
                                {"index_address", host.index_address},
                                {"index_port", host.index_port}});
  }
  return replace_file(file, json::write(list));
}

}  // namespace prims::layers

#include "egress/gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "egress/address_policy.h"

namespace prims::egress {
namespace {

constexpr std::size_t kMaxFileHosts = 64;
constexpr std::size_t kKeptRefusals = 32;
constexpr std::size_t kKeptTarget = 200;

std::string with_slash(std::string path) {
  if (!path.ends_with('/')) path.push_back('/');
  return path;
}

}  // namespace

Gate::Gate(const BrokerOptions& options) : indexes_(options.indexes) {
  for (const FileHost& host : options.file_hosts) {
    if (file_hosts_.size() < kMaxFileHosts)
      file_hosts_.insert_or_assign({host.scheme, host.host, host.port}, host);
  }
}

Result<http::Url> Gate::page_url(const PageTarget& target) const {
  if (target.index >= indexes_.size())
    return fail(Kind::denied, "there is no package index with this number");
  http::Url url = indexes_[target.index];
  const std::string path = url.target.substr(0, url.target.find('?'));
  url.target = target.rest.empty() ? with_slash(path) : with_slash(path) + target.rest;
  return url;
}

Result<http::Url> Gate::file_url(const FileTarget& target) const {
  const std::lock_guard lock(mutex_);
  const auto known = file_hosts_.find({target.scheme, target.host, target.port});
  if (known == file_hosts_.end()) {
    return fail(Kind::denied, fmt::format("{} port {} is not a host that the package index named",
                                          target.host, target.port));
  }
  // From the entry, not from the request: what was checked is what is dialled.
  http::Url url;
  url.scheme = known->second.scheme;
  url.host = known->second.host;
  url.port = known->second.port;
  url.target = target.target;
  return url;
}

Result<Gate::Passage> Gate::passage(const http::Url& url) const {
  if (const http::Url* const index = index_at(origin_of(url))) return Passage{.user_info = index->user_info};
  const std::lock_guard lock(mutex_);
  const auto known = file_hosts_.find(origin_of(url));
  if (known == file_hosts_.end()) {
    return fail(Kind::denied,
                fmt::format("{} is neither the package index nor a host that it named", url.origin()));
  }
  const auto index = parse_address(known->second.index_address, known->second.index_port);
  return Passage{
      .allow_address = [index](const http::Address& address) { return allow_file_host(address, index); }};
}

const http::Url* Gate::index_at(const Origin& origin) const {
  const auto found =
      std::ranges::find_if(indexes_, [&](const http::Url& index) { return origin_of(index) == origin; });
  return found == indexes_.end() ? nullptr : &*found;
}

bool Gate::learn(const http::Url& file, const http::Url& index, const http::Address& address) {
  if (index.scheme == "https" && file.scheme != "https") return false;
  const std::lock_guard lock(mutex_);
  const Origin origin = origin_of(file);
  if (file_hosts_.size() >= kMaxFileHosts && !file_hosts_.contains(origin)) return false;
  file_hosts_.insert_or_assign(origin, FileHost{.scheme = file.scheme,
                                                .host = file.host,
                                                .port = file.port,
                                                .index_address = http::to_string(address),
                                                .index_port = address.port});
  return true;
}

void Gate::note_refusal(std::string_view method, std::string_view target, const std::string& why) {
  const std::lock_guard lock(mutex_);
  ++report_.refused;
  if (report_.refusals.size() >= kKeptRefusals) return;
  const std::string asked = to_utf8(target.substr(0, kKeptTarget));
  report_.refusals.push_back(fmt::format("{} {}: {}", to_utf8(method.substr(0, 16)), asked, why));
}

void Gate::note_upstream_error(const std::string& message) {
  const std::lock_guard lock(mutex_);
  report_.last_upstream_error = message;
}

void Gate::note_upstream_answer() {
  const std::lock_guard lock(mutex_);
  ++report_.upstream_answers;
}

BrokerReport Gate::report() const {
  const std::lock_guard lock(mutex_);
  BrokerReport report = report_;
  for (const auto& [origin, host] : file_hosts_) report.file_hosts.push_back(host);
  return report;
}

}  // namespace prims::egress

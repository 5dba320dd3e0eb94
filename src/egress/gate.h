// Who may be asked: the configured indexes, and the hosts that they named. Keeps account of both. Internal to
// this folder.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "egress/broker.h"
#include "egress/target.h"
#include "http/client.h"

namespace prims::egress {

/// Used by the broker's thread; report() by any.
class Gate {
 public:
  explicit Gate(const BrokerOptions& options);

  /// The URL of an index page, with the index's credentials. Kind::denied when there is no such index.
  Result<http::Url> page_url(const PageTarget& target) const;

  /// The URL of a file on a host that an index named. Kind::denied for all others.
  Result<http::Url> file_url(const FileTarget& target) const;

  struct Passage {
    http::AddressFilter allow_address;  ///< empty: every address
    std::string user_info;              ///< credentials for this origin
  };
  /// What to dial `url` with. Kind::denied when it is neither an index's origin nor a file host.
  Result<Passage> passage(const http::Url& url) const;

  /// An index page that came from `index` at `address` names a file. Returns false when it must not be
  /// offered.
  bool learn(const http::Url& file, const http::Url& index, const http::Address& address);

  void note_refusal(std::string_view method, std::string_view target, const std::string& why);
  void note_upstream_error(const std::string& message);
  void note_upstream_answer();
  BrokerReport report() const;

 private:
  using Origin = std::tuple<std::string, std::string, std::uint16_t>;
  static Origin origin_of(const http::Url& url) { return {url.scheme, url.host, url.port}; }
  const http::Url* index_at(const Origin& origin) const;

  const std::vector<http::Url> indexes_;
  mutable std::mutex mutex_;  // everything below
  std::map<Origin, FileHost> file_hosts_;
  BrokerReport report_;
};

}  // namespace prims::egress

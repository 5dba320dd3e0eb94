// The only way out of a package build.
//
// A reverse proxy for package indexes. Inside the sandbox's network namespace there is one listening socket,
// whose accepting end is held here, outside. The installer is told that its index is `index_url(0)`; answers
// of the index are rewritten so that files, too, are asked for here. Whatever is neither an index page nor a
// file on a host that an index named is refused with 403. docs/egress.md has the rules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/unique_fd.h"
#include "http/url.h"

namespace prims::egress {

/// Where files may be fetched from, because an index said so. Plain data, for the caller to keep between
/// brokers: an installer with a warm cache asks for a file without asking the index first.
struct FileHost {
  std::string scheme;  ///< "https" or "http"
  std::string host;    ///< lower case
  std::uint16_t port = 0;
  std::string index_address;  ///< what the index's own name resolved to when it named this host, "192.0.2.1"
  std::uint16_t index_port = 0;

  friend bool operator==(const FileHost&, const FileHost&) = default;
};

struct BrokerOptions {
  /// Base URLs ("https://host/simple/"), each with the credentials of a private index in its user_info. They
  /// reach the index and files of the same origin, never the sandbox. Their hosts may resolve to any address.
  std::vector<http::Url> indexes;
  std::vector<FileHost> file_hosts;  ///< learned earlier
  std::string extra_ca_file;         ///< PEM, trusted besides the system's store; empty: none

  std::size_t connections = 128;          ///< from the sandbox, at once
  Bytes response = gib(4);                ///< one file
  Bytes page = mib(64);                   ///< one index page
  Milliseconds stall{60'000};             ///< an upstream that sends nothing for so long
  Milliseconds answer{60LL * 60 * 1000};  ///< one answer from its start to its end
};

/// What came of it so far.
struct BrokerReport {
  std::vector<std::string> refusals;  ///< the first few, one sentence each: what was asked for and why not
  std::uint64_t refused = 0;          ///< all of them
  std::optional<std::string> last_upstream_error;
  std::uint64_t upstream_answers = 0;  ///< 0 with an upstream error: there is no network
  std::vector<FileHost> file_hosts;    ///< learned, those of the options included
};

/// Runs on a thread and a loop of its own, so that large downloads never stall the caller's.
class Broker {
 public:
  /// `listening`: a listening TCP socket, wherever its namespace is.
  static Result<std::unique_ptr<Broker>> start(UniqueFd listening, BrokerOptions options);
  /// Stops.
  ~Broker();

  /// Closes everything; after it nothing is accepted and nothing is dialled. Idempotent, does not wait for
  /// the network.
  void stop();

  /// "http://127.0.0.1:PORT/index/0/", as seen inside the sandbox.
  std::string index_url(std::size_t index) const;

  /// Any thread, also after stop().
  BrokerReport report() const;

 private:
  class Impl;
  explicit Broker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prims::egress

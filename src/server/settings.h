// Every limit and option of the program, with its default in place, and where an effective value came from.
//
// Sources, strongest first: flags, environment, one TOML file, the defaults below. The table in
// settings_table.h names each setting once; parsing, `prims config`, --help and docs/settings.md follow it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/result.h"
#include "sandbox/sandbox.h"

namespace prims::server {

struct Settings {
  // Serving over HTTP.
  std::string host = "localhost";  ///< address to listen on; localhost is 127.0.0.1 and ::1
  std::uint16_t port = 9000;       ///< 0: any free port, printed when ready
  /// Serve addresses beyond loopback although nobody has to prove who they are.
  bool allow_unauthenticated = false;
  std::vector<std::string> allowed_hosts;  ///< Host header values accepted besides loopback names and `host`
  std::vector<std::string> allowed_origins;   ///< Origin header values accepted besides loopback origins
  Bytes http_body_size = mib(16);             ///< largest request body
  std::uint32_t http_connections = 1024;      ///< open at once
  Milliseconds http_idle_timeout{75'000};     ///< a connection without a request is closed after this
  std::uint32_t http_sessions = 4096;         ///< legacy MCP sessions kept at once
  Milliseconds http_session_idle{3'600'000};  ///< a legacy session without a request ends after this
  Milliseconds drain_timeout{30'000};         ///< how long running calls may go on after SIGTERM

  // This process.
  std::filesystem::path state_dir;  ///< packages, workspaces, locks; made when first needed
  log::Level log_level = log::Level::info;

  // The sandbox.
  sandbox::Tier min_tier = sandbox::Tier::namespaces;  ///< refuse to run on a host with weaker isolation
  std::uint32_t first_uid = 200'000;                   ///< as root: first host uid that sandboxes may use
  std::uint32_t uid_count = 65'536;                    ///< as root: how many of them
  std::uint32_t concurrent_runs = 16;                  ///< programs that run at once
  std::uint32_t queue_length = 256;  ///< calls that may wait for their turn; more are refused as busy
  bool templates = true;             ///< fork sandboxes from warmed-up interpreters
  Bytes template_memory = gib(1);    ///< of all templates; the least recently used go first
  std::uint32_t pool_size = 4;       ///< sandboxes that wait for a call, for each environment in use
  std::uint32_t pool_total = 16;     ///< the same for all environments together

  // Python and its packages.
  std::string python;                         ///< interpreter; empty: the newest supported one that is found
  std::string index_url;                      ///< package index; empty: the default of uv
  std::vector<std::string> extra_index_urls;  ///< asked besides index_url
  std::vector<std::string> base_packages = {"numpy", "pandas", "openpyxl", "requests", "matplotlib"};
  Milliseconds install_timeout{600'000};  ///< for making one set of packages; not part of a call's own limit
  Bytes layer_store_size = gib(20);       ///< package layers kept; the least recently used go first

  // One run.
  Milliseconds timeout{100'000};        ///< wall clock, when the call names none
  Milliseconds max_timeout{3'600'000};  ///< the most that a call may ask for
  Milliseconds cpu_time{0};            ///< CPU time of all processes together; 0: no limit but the wall clock
  std::uint32_t cpus = 0;              ///< share in whole cores; 0: all
  Bytes memory = gib(2);               ///< all processes, /tmp and /dev/shm together
  std::uint32_t processes = 256;       ///< processes and threads
  std::uint32_t open_files = 1024;     ///< per process
  Bytes workspace_size = gib(2);       ///< below the working directory
  Bytes tmp_size = mib(512);           ///< /tmp
  Bytes shm_size = mib(256);           ///< /dev/shm
  Bytes shown_output = kib(64);        ///< per stream, in the result: head and tail
  Bytes kept_output = mib(16);         ///< per stream; a program that writes more is ended
  Bytes input_size = mib(8);           ///< standard input of a call
  std::uint32_t code_length = 20'000;  ///< characters of code
};

/// One setting as it holds, for `prims config`.
struct EffectiveValue {
  std::string key;
  std::string value;   ///< as one would write it
  std::string origin;  ///< "default", "/etc/prims/prims.toml:3", "PRIMS_PORT" or "--port"
};

struct LoadedSettings {
  Settings settings;
  std::vector<EffectiveValue> effective;      ///< every setting, in the order of the table
  std::optional<std::filesystem::path> file;  ///< the one that was read
  std::vector<std::string> warnings;          ///< variables that have no effect
};

/// What load_settings reads. Plain data, so that tests need neither argv nor the process environment.
struct Sources {
  struct Flag {
    std::string key;    ///< of the setting
    std::string value;  ///< a list setting may occur several times
  };
  std::vector<Flag> flags;
  std::optional<std::filesystem::path> config;  ///< --config
  std::map<std::string, std::string> environment;
  std::filesystem::path directory = ".";  ///< where ./prims.toml is looked for
};

/// The files that are looked for, in this order; the first that exists is the only one read. One named by
/// --config or PRIMS_CONFIG must exist.
std::vector<std::filesystem::path> configuration_files(const Sources& sources);

/// An error names the setting, where the value came from, and what is accepted.
Result<LoadedSettings> load_settings(const Sources& sources);

}  // namespace prims::server

#include "server/settings_table.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace prims::server {
namespace {

constexpr std::uint64_t kSecond = 1000;
constexpr std::uint64_t kDay = 24 * 3600 * kSecond;

constexpr std::string_view kServing = "Serving";
constexpr std::string_view kProcess = "This process";
constexpr std::string_view kSandbox = "Sandbox";
constexpr std::string_view kPython = "Python and packages";

const std::array kTable = {
    Definition{.group = kServing,
               .key = "host",
               .field = &Settings::host,
               .help = "Address to listen on; localhost is 127.0.0.1 and ::1"},
    Definition{.group = kServing,
               .key = "port",
               .field = &Settings::port,
               .help = "TCP port; 0 takes any free one and prints it",
               .most = 65535,
               .older_variable = "PORT"},
    Definition{.group = kServing,
               .key = "allow_unauthenticated",
               .field = &Settings::allow_unauthenticated,
               .help = "Serve addresses beyond loopback although anyone who reaches them can run code"},
    Definition{.group = kServing,
               .key = "allowed_hosts",
               .field = &Settings::allowed_hosts,
               .help = "Host header values accepted besides loopback names and the listening address",
               .when_empty = "none"},
    Definition{.group = kServing,
               .key = "allowed_origins",
               .field = &Settings::allowed_origins,
               .help = "Origin header values accepted besides loopback origins",
               .when_empty = "none"},
    Definition{.group = kServing,
               .key = "http_body_size",
               .field = &Settings::http_body_size,
               .help = "Largest request body",
               .least = kib(64).count,
               .most = gib(1).count},
    Definition{.group = kServing,
               .key = "http_connections",
               .field = &Settings::http_connections,
               .help = "Connections open at once",
               .least = 1,
               .most = 1'000'000},
    Definition{.group = kServing,
               .key = "http_idle_timeout",
               .field = &Settings::http_idle_timeout,
               .help = "A connection without a request is closed after this",
               .least = kSecond,
               .most = kDay},
    Definition{.group = kServing,
               .key = "http_sessions",
               .field = &Settings::http_sessions,
               .help = "Legacy MCP sessions kept at once",
               .least = 1,
               .most = 10'000'000},
    Definition{.group = kServing,
               .key = "http_session_idle",
               .field = &Settings::http_session_idle,
               .help = "A legacy MCP session without a request ends after this",
               .least = kSecond,
               .most = 365 * kDay},
    Definition{.group = kServing,
               .key = "drain_timeout",
               .field = &Settings::drain_timeout,
               .help = "How long running calls may go on after SIGTERM",
               .most = kDay},

    Definition{.group = kProcess,
               .key = "state_dir",
               .field = &Settings::state_dir,
               .help = "Directory for packages, workspaces and locks; several processes may share it",
               .older_variable = "PRIMCS_TMP_DIR",
               .when_empty = "$XDG_STATE_HOME/prims, else ~/.local/state/prims, else /var/lib/prims"},
    Definition{.group = kProcess,
               .key = "log_level",
               .field = &Settings::log_level,
               .help = "Least level that is written to standard error"},

    Definition{.group = kSandbox,
               .key = "min_tier",
               .field = &Settings::min_tier,
               .help = "Refuse to run where isolation is weaker than this; `prims doctor` shows what holds"},
    Definition{.group = kSandbox,
               .key = "first_uid",
               .field = &Settings::first_uid,
               .help = "As root: first host uid that sandboxes may use",
               .least = 1,
               .most = 4'294'000'000},
    Definition{.group = kSandbox,
               .key = "uid_count",
               .field = &Settings::uid_count,
               .help = "As root: how many host uids from there on",
               .least = 1,
               .most = 1'000'000},
    Definition{.group = kSandbox,
               .key = "concurrent_runs",
               .field = &Settings::concurrent_runs,
               .help = "Programs that run at once",
               .least = 1,
               .most = 10'000},
    Definition{.group = kSandbox,
               .key = "queue_length",
               .field = &Settings::queue_length,
               .help = "Calls that may wait for their turn; more are refused as busy",
               .most = 100'000},
    Definition{.group = kSandbox,
               .key = "templates",
               .field = &Settings::templates,
               .help = "Fork sandboxes from warmed-up interpreters, one for each set of packages in use; "
                       "without, every program starts an interpreter of its own"},
    Definition{.group = kSandbox,
               .key = "template_memory",
               .field = &Settings::template_memory,
               .help = "Memory of all warmed-up interpreters; the least recently used go first",
               .least = mib(64).count},
    Definition{.group = kSandbox,
               .key = "pool_size",
               .field = &Settings::pool_size,
               .help = "Sandboxes that are ready and wait for a call, for each set of packages in use",
               .most = 64},
    Definition{.group = kSandbox,
               .key = "pool_total",
               .field = &Settings::pool_total,
               .help = "The same for all sets of packages together",
               .most = 1024},

    Definition{.group = kPython,
               .key = "python",
               .field = &Settings::python,
               .help = "Interpreter for user code, CPython 3.9 or newer: a path or a name such as python3.12",
               .when_empty = "python3 on PATH, else an installation of pyenv or uv, else /usr/bin/python3"},
    Definition{.group = kPython,
               .key = "index_url",
               .field = &Settings::index_url,
               .help = "Package index",
               .when_empty = "the default of uv"},
    Definition{.group = kPython,
               .key = "extra_index_urls",
               .field = &Settings::extra_index_urls,
               .help = "Package indexes asked besides index_url",
               .when_empty = "none"},
    Definition{.group = kPython,
               .key = "base_packages",
               .field = &Settings::base_packages,
               .help = "Packages that every program may import without naming them",
               .when_empty = "none"},
    Definition{.group = kPython,
               .key = "install_timeout",
               .field = &Settings::install_timeout,
               .help = "Time for making one set of packages; not part of a run's own limit",
               .least = kSecond,
               .most = kDay},
    Definition{.group = kPython,
               .key = "layer_store_size",
               .field = &Settings::layer_store_size,
               .help = "Package layers kept on disk; the least recently used go first",
               .least = mib(64).count},

    Definition{.group = kLimitsGroup,
               .key = "timeout",
               .field = &Settings::timeout,
               .help = "Wall-clock time, when the call names none",
               .least = 1,
               .most = 30 * kDay,
               .older_variable = "PRIMCS_TIMEOUT"},
    Definition{.group = kLimitsGroup,
               .key = "max_timeout",
               .field = &Settings::max_timeout,
               .help = "Most wall-clock time that a call may ask for",
               .least = 1,
               .most = 30 * kDay},
    Definition{.group = kLimitsGroup,
               .key = "cpu_time",
               .field = &Settings::cpu_time,
               .help = "CPU time of all processes together; 0: no limit but the wall clock",
               .most = 365 * kDay},
    Definition{.group = kLimitsGroup,
               .key = "cpus",
               .field = &Settings::cpus,
               .help = "Share of the machine in whole cores; 0: all of it",
               .most = 4096},
    Definition{.group = kLimitsGroup,
               .key = "memory",
               .field = &Settings::memory,
               .help = "Memory of all processes, /tmp and /dev/shm together",
               .least = mib(32).count},
    Definition{.group = kLimitsGroup,
               .key = "processes",
               .field = &Settings::processes,
               .help = "Processes and threads",
               .least = 1,
               .most = 100'000},
    Definition{.group = kLimitsGroup,
               .key = "open_files",
               .field = &Settings::open_files,
               .help = "Open files of each process",
               .least = 16,
               .most = 1'048'576},
    Definition{.group = kLimitsGroup,
               .key = "workspace_size",
               .field = &Settings::workspace_size,
               .help = "Files below the working directory",
               .least = mib(1).count},
    Definition{.group = kLimitsGroup,
               .key = "tmp_size",
               .field = &Settings::tmp_size,
               .help = "Files in /tmp",
               .least = kib(64).count},
    Definition{.group = kLimitsGroup,
               .key = "shm_size",
               .field = &Settings::shm_size,
               .help = "Files in /dev/shm (shared memory)",
               .least = kib(64).count},
    Definition{.group = kLimitsGroup,
               .key = "shown_output",
               .field = &Settings::shown_output,
               .help = "Output per stream in the result: its head and its tail",
               .least = kib(1).count,
               .most = mib(64).count,
               .older_variable = "PRIMCS_MAX_OUTPUT"},
    Definition{.group = kLimitsGroup,
               .key = "kept_output",
               .field = &Settings::kept_output,
               .help = "Output per stream; a program that writes more is ended",
               .least = kib(1).count,
               .most = gib(16).count},
    Definition{.group = kLimitsGroup,
               .key = "input_size",
               .field = &Settings::input_size,
               .help = "Standard input of a call",
               .most = gib(1).count},
    Definition{.group = kLimitsGroup,
               .key = "code_length",
               .field = &Settings::code_length,
               .help = "Characters of code",
               .least = 1,
               .most = 10'000'000},
};

}  // namespace

std::span<const Definition> settings_table() {
  return kTable;
}

const Definition* find_setting(std::string_view key) {
  const auto* found = std::ranges::find(kTable, key, &Definition::key);
  return found == kTable.end() ? nullptr : found;
}

std::string flag_name(const Definition& setting) {
  std::string name = "--" + std::string(setting.key);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::vector<std::string> variable_names(const Definition& setting) {
  std::string name = "PRIMS_";
  for (const char c : setting.key)
    name.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  std::vector<std::string> names = {std::move(name)};
  if (!setting.older_variable.empty()) names.emplace_back(setting.older_variable);
  return names;
}

bool is_list(const Definition& setting) {
  return std::holds_alternative<std::vector<std::string> Settings::*>(setting.field);
}

bool is_switch(const Definition& setting) {
  return std::holds_alternative<bool Settings::*>(setting.field);
}

}  // namespace prims::server

// The result of run_code, field by field: one object for the MCP tool, `prims run --json` and whoever reads
// them.
//
// Fields that are empty or have their ordinary value are left out, except stdout, stderr, artifacts and
// status.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "python/runner.h"
#include "server/status.h"
#include "session/artifacts.h"

namespace prims::server {

/// Everything that is known about one call when it is over.
struct Report {
  std::string run_id;
  std::optional<Status> status;  ///< set for calls that ran nothing; otherwise it follows from `run`
  std::string message;           ///< likewise
  std::string hint;              ///< beside what the status itself suggests
  std::optional<Milliseconds> retry_after;  ///< for a call that was refused because too many wait
  std::string log;                          ///< a tool's own last lines, for dependency_error
  std::optional<python::RunResult> run;
  std::vector<session::Artifact> artifacts;
  std::string artifacts_incomplete;  ///< one sentence when there are more than are listed
  Milliseconds install{0};
  Milliseconds queue{0};
  Milliseconds collect{0};
  std::string python_version;
  std::string lock;
  std::string isolation;
  sandbox::Enforcement enforcement;
};

Status status_of(const Report& report);

json::Object to_json(const Report& report);

/// The exit status that `prims run` ends with (docs/cli.md).
int exit_status_of(const Report& report);

/// The JSON Schema (2020-12, root object) that every result conforms to.
json::Object result_schema();

}  // namespace prims::server

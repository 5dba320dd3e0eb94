#include "server/status.h"

namespace prims::server {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::error:
      return "error";
    case Status::timeout:
      return "timeout";
    case Status::memory_limit:
      return "memory_limit";
    case Status::cpu_limit:
      return "cpu_limit";
    case Status::process_limit:
      return "process_limit";
    case Status::disk_limit:
      return "disk_limit";
    case Status::output_limit:
      return "output_limit";
    case Status::killed:
      return "killed";
    case Status::cancelled:
      return "cancelled";
    case Status::policy_violation:
      return "policy_violation";
    case Status::dependency_error:
      return "dependency_error";
    case Status::invalid_argument:
      return "invalid_argument";
    case Status::sandbox_unavailable:
      return "sandbox_unavailable";
  }
  return "sandbox_unavailable";
}

std::string_view advice(Status status) {
  switch (status) {
    case Status::timeout:
      return "Pass a larger timeout (at most the setting max_timeout), or do less in one call; what was "
             "printed until then is in "
             "stdout.";
    case Status::memory_limit:
      return "Work in smaller pieces, or raise the setting memory.";
    case Status::cpu_limit:
      return "Do less in one call, or raise the setting cpu_time.";
    case Status::process_limit:
      return "Start fewer processes or threads, or raise the setting processes.";
    case Status::disk_limit:
      return "Write less, or raise the setting workspace_size.";
    case Status::output_limit:
      return "Write large output to a file below output/ instead of printing it, or raise the setting "
             "kept_output.";
    default:
      return "";
  }
}

}  // namespace prims::server

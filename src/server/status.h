// What happened to a call, in one word: the `status` field of every result.
#pragma once

#include <string_view>

namespace prims::server {

enum class Status {
  ok,
  error,
  timeout,
  memory_limit,
  cpu_limit,
  process_limit,
  disk_limit,
  output_limit,
  killed,
  cancelled,
  policy_violation,
  dependency_error,
  invalid_argument,
  sandbox_unavailable,
};

/// As in the result: "memory_limit".
std::string_view to_string(Status status);

/// Whether the program came to its own end. If not, the tool result is marked as an error.
constexpr bool ran_to_its_end(Status status) {
  return status == Status::ok || status == Status::error;
}

/// What to do next when a limit ended the program, with the setting that holds it; otherwise empty.
std::string_view advice(Status status);

}  // namespace prims::server

// What the probe can measure, one function for each command.
#pragma once

#include "options.h"
#include "timing.h"

namespace bench {

/// http: requests on connections that stay open, from the write of a request to the last byte of its answer.
Samples http_calls(const Options& options);

/// stdio: requests to one running program, a line each, from the write to the answer's line end.
Samples stdio_calls(const Options& options);

/// start: a program's start, a conversation of lines, up to the last answer's line end.
Samples program_starts(const Options& options);

/// run: a program from its start to its end, its output read.
Samples program_runs(const Options& options);

}  // namespace bench

// The commands: each does its work, reports, and returns the exit status of the program.
#pragma once

#include "cli/invocation.h"
#include "server/settings.h"

namespace prims::cli {

int serve(const server::LoadedSettings& loaded);
int stdio(const server::LoadedSettings& loaded);
int run(const RunCommand& command, const server::LoadedSettings& loaded);
int call(const CallCommand& command);
int doctor(const DoctorCommand& command, const server::LoadedSettings& loaded);
int config(const ConfigCommand& command, const server::LoadedSettings& loaded);

}  // namespace prims::cli

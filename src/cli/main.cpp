// prims: read the command line, load the settings, run the command, end with its status.
#include <exception>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/invocation.h"
#include "cli/terminal.h"
#include "server/app.h"

namespace prims::cli {
namespace {

Result<server::LoadedSettings> load(const Invocation& invocation) {
  const server::Sources sources{
      .flags = invocation.flags, .config = invocation.config, .environment = environment(), .directory = "."};
  PRIMS_ASSIGN_OR_RETURN(server::LoadedSettings loaded, server::load_settings(sources));
  for (const std::string& warning : loaded.warnings) complain(warning);
  return loaded;
}

// A server tells what it does; a program that runs here shares standard error with its own output.
log::Level log_level(const server::LoadedSettings& loaded, bool serves) {
  for (const server::EffectiveValue& value : loaded.effective) {
    if (value.key == "log_level" && value.origin == "default" && !serves) return log::Level::warning;
  }
  return loaded.settings.log_level;
}

int dispatch(const Command& command, const server::LoadedSettings& loaded) {
  const bool serves =
      std::holds_alternative<ServeCommand>(command) || std::holds_alternative<StdioCommand>(command);
  log::set_level(log_level(loaded, serves));
  if (std::holds_alternative<ServeCommand>(command)) return serve(loaded);
  if (std::holds_alternative<StdioCommand>(command)) return stdio(loaded);
  if (const auto* wanted = std::get_if<RunCommand>(&command)) return run(*wanted, loaded);
  if (const auto* wanted = std::get_if<DoctorCommand>(&command)) return doctor(*wanted, loaded);
  return config(std::get<ConfigCommand>(command), loaded);
}

int run_main(std::vector<std::string> arguments) {
  const auto invocation = parse_arguments(std::move(arguments));
  if (!invocation) {
    complain(invocation.error().message);
    return server::exit_status::kUsage;
  }
  if (const auto* text = std::get_if<PrintText>(&invocation->command)) {
    print(text->text);
    return server::exit_status::kOk;
  }
  if (const auto* wanted = std::get_if<CallCommand>(&invocation->command)) return call(*wanted);
  const auto loaded = load(*invocation);
  if (!loaded) {
    complain(loaded.error().message);
    return server::exit_status::kUsage;
  }
  return dispatch(invocation->command, *loaded);
}

}  // namespace
}  // namespace prims::cli

int main(int argc, char** argv) {
  try {
    return prims::cli::run_main(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& fault) {
    prims::cli::complain(std::string("internal error: ") + fault.what());
    return prims::server::exit_status::kSandboxFailed;
  }
}

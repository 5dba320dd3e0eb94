#include "cli/commands.h"
#include "cli/terminal.h"
#include "server/app.h"

namespace prims::cli {

int serve(const server::LoadedSettings& loaded) {
  if (const auto allowed = server::check_exposure(loaded.settings); !allowed) {
    complain(allowed.error().message);
    return server::exit_status::kUsage;
  }
  return server::serve(loaded.settings);
}

int stdio(const server::LoadedSettings& loaded) {
  return server::stdio(loaded.settings);
}

}  // namespace prims::cli

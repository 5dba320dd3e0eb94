#include "cli/commands.h"
#include "server/app.h"

namespace prims::cli {

int serve(const server::LoadedSettings& loaded) {
  return server::serve(loaded.settings);
}

int stdio(const server::LoadedSettings& loaded) {
  return server::stdio(loaded.settings);
}

}  // namespace prims::cli

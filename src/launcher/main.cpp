// One program, two roles. The server executes it as the launcher; the first process of each sandbox executes
// it again, as init.
#include <cstring>

#include "launcher/init.h"
#include "launcher/outside.h"
#include "launcher/wire.h"

int main(int argc, char** argv) {
  using namespace prims::launcher;
  if (argc == 1 && std::strcmp(argv[0], wire::kInitName) == 0) return run_init();
  if (argc == 1 && std::strcmp(argv[0], wire::kLauncherName) == 0) return run_launcher();
  return 2;
}

#include "launcher/image.h"

// PRIMS_LAUNCHER_FILE is the path of the linked launcher. The file ends up byte for byte in the read-only
// data of prims.
__asm__(
    ".section .rodata.prims_launcher, \"a\", @progbits\n"
    ".balign 16\n"
    "prims_launcher_begin:\n"
    ".incbin \"" PRIMS_LAUNCHER_FILE
    "\"\n"
    "prims_launcher_end:\n"
    ".previous\n");

extern "C" {
[[gnu::visibility("hidden")]] extern const unsigned char prims_launcher_begin[];
[[gnu::visibility("hidden")]] extern const unsigned char prims_launcher_end[];
}

namespace prims::launcher {

std::span<const unsigned char> image() {
  return {prims_launcher_begin, prims_launcher_end};
}

}  // namespace prims::launcher

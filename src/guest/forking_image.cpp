#include "guest/forking_image.h"

// PRIMS_FORKING_FILE is the path of the linked module. The file ends up byte for byte in the read-only data
// of prims.
__asm__(
    ".section .rodata.prims_forking, \"a\", @progbits\n"
    ".balign 16\n"
    "prims_forking_begin:\n"
    ".incbin \"" PRIMS_FORKING_FILE
    "\"\n"
    "prims_forking_end:\n"
    ".previous\n");

extern "C" {
[[gnu::visibility("hidden")]] extern const char prims_forking_begin[];
[[gnu::visibility("hidden")]] extern const char prims_forking_end[];
}

namespace prims::guest {

std::string_view forking_image() {
  return {prims_forking_begin, prims_forking_end};
}

}  // namespace prims::guest

// PEP 723 blocks in code that anyone sends.
#include "layers/script_block.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto block = prims::layers::read_script_block(prims::fuzz::text_of(data, size));
  if (block && *block) (void)prims::layers::satisfies("3.11.7", (*block)->requires_python);
  return 0;
}

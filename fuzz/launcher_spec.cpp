// The description of a sandbox, as the launcher reads it: any bytes are either refused or safe to walk.
#include "fuzz.h"
#include "launcher/wire.h"

namespace wire = prims::launcher::wire;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  wire::Spec spec;
  if (wire::decode(prims::fuzz::text_of(data, size), spec) != nullptr) return 0;
  std::size_t total = 0;
  spec.trees.each([&](const wire::Tree& tree) { return total += tree.source.size(), false; });
  spec.steps.each(
      [&](const wire::Step& step) { return total += step.path.size() + step.text.size(), false; });
  spec.masks.each([&](const wire::Mask& mask) { return total += mask.path.size(), false; });
  spec.rules.each([&](const wire::Rule& rule) { return total += rule.path.size(), false; });
  prims::fuzz::require(total <= size);
  return 0;
}

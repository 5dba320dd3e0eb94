// Strict JSON: what is accepted is written back as the same value.
#include "json/json.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto value = prims::json::parse(prims::fuzz::text_of(data, size));
  if (!value) return 0;
  const auto again = prims::json::parse(prims::json::write(*value));
  prims::fuzz::require(again.has_value() && *again == *value);
  return 0;
}

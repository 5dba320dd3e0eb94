// Frames that a hostile guest writes to the private descriptor.
#include "fuzz.h"
#include "python/protocol.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  prims::python::MessageReader reader;
  reader.feed(prims::fuzz::text_of(data, size));
  for (;;) {
    const auto message = reader.next();
    if (!message || !*message) return 0;
    prims::python::read_result((*message)->fields);
  }
}

#include "launcher/spec_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

namespace prims::launcher {

Failure map_spec(int file, wire::Spec& spec) {
  struct stat status{};
  LAUNCHER_TRY(check("stat the spec", fstat(file, &status)));
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  if (mapped == MAP_FAILED) return Failure{"map the spec", errno};
  const char* wrong = wire::decode(std::string_view(static_cast<const char*>(mapped), size), spec);
  return wrong == nullptr ? Failure{} : Failure{wrong, EPROTO};
}

}  // namespace prims::launcher

// Paths below a workspace: whatever the name, nothing outside is ever opened.
#include "session/confined.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz.h"

namespace {

namespace fs = std::filesystem;

/// A workspace with links that lead out of it, made once.
const fs::path& workspace() {
  static const fs::path made = [] {
    std::string pattern = fs::temp_directory_path() / "prims-fuzz-XXXXXX";
    const fs::path root = ::mkdtemp(pattern.data());
    fs::create_directories(root / "a/b");
    std::ofstream(root / "a/file") << "x";
    fs::create_symlink("/etc/passwd", root / "a/out");
    fs::create_symlink("..", root / "a/b/up");
    return root;
  }();
  return made;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto confined = prims::session::Confined::open(workspace());
  prims::fuzz::require(confined.has_value());
  const auto file = confined->open_file(prims::fuzz::text_of(data, size));
  if (!file) return 0;
  struct stat opened{};
  struct stat only{};
  prims::fuzz::require(::fstat(file->get(), &opened) == 0 &&
                       ::stat((workspace() / "a/file").c_str(), &only) == 0);
  prims::fuzz::require(opened.st_ino == only.st_ino && opened.st_dev == only.st_dev);
  return 0;
}

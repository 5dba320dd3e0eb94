#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "base/random.h"
#include "base/unique_fd.h"

namespace prims {
namespace {

Result<> write_new(const std::filesystem::path& file, std::string_view text) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(file.string());
  while (!text.empty()) {
    const auto written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(file.string());
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<> replace_file(const std::filesystem::path& file, std::string_view text) {
  const auto temporary = file.parent_path() / ("." + random_token());
  auto written = write_new(temporary, text);
  if (written && ::rename(temporary.c_str(), file.c_str()) != 0) written = fail_errno(file.string());
  if (!written) ::unlink(temporary.c_str());
  return written;
}

}  // namespace prims

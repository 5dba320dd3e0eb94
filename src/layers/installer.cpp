#include "layers/installer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "layers/hash.h"
#include "layers/lock.h"
#include "layers/tree.h"
#include "layers/uv_tool.h"
#include "sandbox/directory_watch.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRequirements = "/opt/job/requirements.txt";
constexpr const char* kLock = "/opt/job/lock.txt";
constexpr const char* kCacheLock = "locks/uv-cache";
constexpr const char* kEnvironmentPython = "/env/bin/python";
/// Any name will do: it is never found, because there is no network where it is asked for.
constexpr const char* kProbe = "pip";
constexpr std::uintmax_t kLargestFontList = 8 << 20;
constexpr auto kFontTime = std::chrono::minutes(2);

void append(std::vector<std::string>& list, std::initializer_list<std::string> more) {
  list.insert(list.end(), more);
}

std::vector<std::string> uv_command(std::initializer_list<std::string> words) {
  std::vector<std::string> argv{kUvInside};
  append(argv, words);
  append(argv, {"--quiet", "--no-progress", "--color", "never", "--no-python-downloads"});
  return argv;
}

/// The last index is the default one; those before it come first.
void add_indexes(std::vector<std::string>& argv, std::size_t count) {
  for (std::size_t i = 0; i + 1 < count; ++i) append(argv, {"--index", index_url_inside(i)});
  append(argv, {"--default-index", index_url_inside(count - 1)});
}

std::vector<std::string> uv_environment() {
  // The broker retries for us where that makes sense; uv's own pauses only delay the answer.
  return {"UV_HTTP_RETRIES=1", "UV_HTTP_TIMEOUT=60", "UV_CONCURRENT_DOWNLOADS=16"};
}

sandbox::Attachment writable(const fs::path& source, const char* target) {
  return {.source = source.string(), .target = target, .access = sandbox::Access::read_write};
}

sandbox::Attachment readable(const fs::path& source, const char* target) {
  return {.source = source.string(), .target = target, .access = sandbox::Access::read_only};
}

std::optional<std::string> ended_badly(const sandbox::Outcome& outcome) {
  struct Name {
    std::optional<std::string> operator()(const sandbox::Exited&) const { return std::nullopt; }
    std::optional<std::string> operator()(const sandbox::TimedOut&) const { return "took too long"; }
    std::optional<std::string> operator()(const sandbox::OutOfMemory& end) const {
      return "used more than " + to_string(end.limit) + " of memory";
    }
    std::optional<std::string> operator()(const sandbox::DiskLimit& end) const {
      return "wrote more than " + to_string(end.limit);
    }
    std::optional<std::string> operator()(const sandbox::ProcessLimit&) const {
      return "started too many processes";
    }
    std::optional<std::string> operator()(const sandbox::Signalled& end) const {
      return fmt::format("was ended by signal {}", end.signal);
    }
    std::optional<std::string> operator()(const sandbox::SetupFailed& end) const {
      return fmt::format("could not start ({}: {})", end.step, errno_text(end.error));
    }
    std::optional<std::string> operator()(const sandbox::CpuTimeExceeded&) const {
      return "used too much CPU time";
    }
    std::optional<std::string> operator()(const sandbox::OutputLimit&) const { return "printed too much"; }
    std::optional<std::string> operator()(const sandbox::Cancelled&) const { return "was cancelled"; }
  };
  return std::visit(Name{}, outcome);
}

/// The font list that matplotlib has written, if it is an ordinary file of sensible size.
std::optional<std::pair<std::string, std::string>> read_font_list(const fs::path& directory) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("fontlist-") || !name.ends_with(".json")) continue;
    const UniqueFd file(::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status{};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (static_cast<std::uintmax_t>(status.st_size) > kLargestFontList) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return std::pair(name, std::move(text).str());
  }
  return std::nullopt;
}

Result<> keep_font_list(const fs::path& environment, const fs::path& output) {
  const auto found = read_font_list(output);
  if (!found) return fail(Kind::not_found, "matplotlib wrote no font list");
  const auto directory = environment / "share/prims/matplotlib";
  PRIMS_RETURN_ON_ERROR(make_plain_directory(environment / "share"));
  PRIMS_RETURN_ON_ERROR(make_plain_directory(environment / "share/prims"));
  PRIMS_RETURN_ON_ERROR(make_plain_directory(directory));
  return write_plain_file(directory / found->first, found->second);
}

struct SharedCache {
  UniqueFd lock;
  fs::path directory;   ///< what uv writes to
  fs::path file_hosts;  ///< what the broker learned from these indexes
};

/// The cache of these indexes, locked against being emptied. Blocks, as all that touches files here.
Result<SharedCache> use_cache(const fs::path& state, const std::vector<std::string>& indexes, uid_t owner) {
  UniqueFd fd(::open((state / kCacheLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // Whoever empties the cache holds the lock for one rename only.
  if (!fd || ::flock(fd.get(), LOCK_SH) != 0) return fail_errno("lock uv's cache");
  // Inside, every index has the same address, so each list of indexes has a cache of its own.
  const auto home =
      state / "uv-cache" / sha256_hex(fmt::format("{}", fmt::join(indexes, "\n"))).substr(0, 16);
  std::error_code failed;
  fs::create_directories(home, failed);
  if (failed) return fail_errno(home.string(), failed.value());
  PRIMS_RETURN_ON_ERROR(make_writable(home / "cache", owner));
  return SharedCache{std::move(fd), home / "cache", home / "file-hosts.json"};
}

/// Where one resolution works; removed afterwards.
struct Workplace {
  std::unique_ptr<BuildDirectory> directory;
  SharedCache shared;
};

Result<Workplace> make_workplace(const fs::path& state, const std::vector<std::string>& indexes,
                                 const Interpreter& interpreter, uid_t owner) {
  PRIMS_ASSIGN_OR_RETURN(auto work, BuildDirectory::create(state / "builds"));
  auto directory = std::make_unique<BuildDirectory>(std::move(work));
  PRIMS_ASSIGN_OR_RETURN(auto shared, use_cache(state, indexes, owner));
  PRIMS_RETURN_ON_ERROR(make_writable(directory->path() / "cache", owner));
  PRIMS_RETURN_ON_ERROR(write_skeleton(directory->path() / "env", interpreter, owner));
  return Workplace{std::move(directory), std::move(shared)};
}

}  // namespace

Installer::Installer(fs::path state, Interpreter interpreter, Workshop& workshop, io::Workers& workers)
    : state_(std::move(state)),
      interpreter_(std::move(interpreter)),
      workshop_(workshop),
      workers_(workers),
      compiler_(state_, interpreter_, workshop, workers) {}

void collect_cache(const fs::path& state, Bytes limit) {
  const auto cache = state / "uv-cache";
  const auto size = sandbox::measure_tree(cache.string());
  if (!size || (size->bytes <= limit && !size->too_many)) return;
  const UniqueFd fd(::open((state / kCacheLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return;
  auto grave = BuildDirectory::create(state / "builds");
  if (!grave) return;
  if (::rename(cache.c_str(), (grave->path() / "cache").c_str()) != 0) return;
  log::info("emptied uv's cache, which had {}", to_string(size->bytes));
}

Diagnosis Installer::explain(const JobResult& result) const {
  if (const auto end = ended_badly(result.outcome)) {
    return {Cause::other,
            {.message = fmt::format("Installing the packages {}.", *end),
             .hint = "Ask for fewer or smaller packages, or for versions that have wheels.",
             .log = last_lines(to_utf8(result.err), 30)}};
  }
  auto found = diagnose(result.err, interpreter_);
  const bool about_network = found.cause == Cause::unreachable || found.cause == Cause::refused;
  if (about_network && !result.refusals.empty()) {
    found.cause = Cause::refused;
    found.error.message =
        "The installation asked for something that is not let through: " + result.refusals.front();
    found.error.hint =
        "Only the package index and the files that it names can be reached; the setting `index_url` names "
        "it.";
  } else if (result.network_error) {
    found.error.log = fmt::format("{}\n{}", *result.network_error, found.error.log);
  }
  return found;
}

io::Task<Result<std::string>> Installer::default_index(std::vector<sandbox::FileEntry> uv_files,
                                                       Deadline deadline) {
  Job job{.argv = uv_command(
              {"pip", "compile", "--no-cache", "--python", interpreter_.executable, kRequirements}),
          .environment = {"UV_HTTP_RETRIES=0"},
          .files = std::move(uv_files),
          .attachments = {},
          .indexes = {},
          .file_hosts = {},
          .deadline = deadline};
  for (const auto& file : job.files) {
    if (file.path == kUvUserFile) job.environment.push_back("UV_CONFIG_FILE=" + file.path);
  }
  job.files.push_back({.path = kRequirements, .content = fmt::format("{}\n", kProbe)});
  auto ran = co_await workshop_.run(std::move(job));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto result, std::move(ran));
  auto index = index_in_error(result.err, kProbe);
  if (index) co_return *std::move(index);
  co_return fail(Kind::unavailable,
                 "uv does not say which package index it uses; set `index_url`. It said: " +
                     last_lines(to_utf8(result.err), 3));
}

io::Task<Result<std::variant<Locked, Diagnosis>>> Installer::compile(std::string requirements,
                                                                     std::vector<std::string> indexes,
                                                                     Build build, Deadline deadline) {
  auto prepare = [state = state_, indexes, interpreter = interpreter_, owner = workshop_.owner()] {
    return make_workplace(state, indexes, interpreter, owner);
  };
  auto preparing = co_await workers_.run(std::move(prepare));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto place, std::move(preparing));
  const auto& work = *place.directory;
  const auto& shared = place.shared;
  const auto cache = build == Build::never ? shared.directory : work.path() / "cache";
  const auto environment = work.path() / "env";

  auto argv = uv_command({"pip", "compile", "--no-config", "--generate-hashes", "--no-header",
                          "--no-annotate", "--python", kEnvironmentPython, "--cache-dir", kCacheMount});
  add_indexes(argv, indexes.size());
  if (build == Build::never) argv.emplace_back("--no-build");
  argv.emplace_back(kRequirements);
  Job job{.argv = std::move(argv),
          .environment = uv_environment(),
          .files = {{.path = kRequirements, .content = std::move(requirements)}},
          .attachments = {readable(environment, kEnvironmentMount), writable(cache, kCacheMount)},
          .indexes = std::move(indexes),
          .file_hosts = shared.file_hosts,
          .deadline = deadline};
  auto ran = co_await workshop_.run(std::move(job));
  PRIMS_CO_ASSIGN_OR_RETURN(auto result, std::move(ran));
  if (!result.succeeded()) co_return explain(result);
  co_return Locked{.lock = to_utf8(result.out), .needs_build = build == Build::when_needed};
}

io::Task<Result<std::variant<Locked, Diagnosis>>> Installer::resolve(std::string requirements,
                                                                     std::vector<std::string> indexes,
                                                                     Deadline deadline) {
  auto compiled = co_await compile(requirements, indexes, Build::never, deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(auto of_wheels, std::move(compiled));
  const auto* failure = std::get_if<Diagnosis>(&of_wheels);
  if (failure == nullptr || failure->cause != Cause::needs_build) co_return of_wheels;
  auto built = co_await compile(std::move(requirements), std::move(indexes), Build::when_needed, deadline);
  co_return std::move(built);
}

io::Task<Result<std::optional<Diagnosis>>> Installer::unpack(fs::path build, Locked locked,
                                                             std::vector<std::string> indexes,
                                                             Deadline deadline) {
  auto prepare = [state = state_, indexes, build, owner = workshop_.owner()]() -> Result<SharedCache> {
    PRIMS_RETURN_ON_ERROR(make_writable(build / "cache", owner));
    return use_cache(state, indexes, owner);
  };
  auto preparing = co_await workers_.run(std::move(prepare));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto shared, std::move(preparing));
  const auto cache = locked.needs_build ? build / "cache" : shared.directory;
  auto argv = uv_command({"pip", "install", "--no-config", "--no-deps", "--require-hashes", "--link-mode",
                          "copy", "--python", kEnvironmentPython, "--cache-dir", kCacheMount});
  add_indexes(argv, indexes.size());
  if (!locked.needs_build) argv.emplace_back("--no-build");
  append(argv, {"-r", kLock});
  Job job{.argv = std::move(argv),
          .environment = uv_environment(),
          .files = {{.path = kLock, .content = std::move(locked.lock)}},
          .attachments = {writable(build / "env", kEnvironmentMount), writable(cache, kCacheMount)},
          .indexes = std::move(indexes),
          .file_hosts = shared.file_hosts,
          .deadline = deadline};
  auto ran = co_await workshop_.run(std::move(job));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto result, std::move(ran));
  if (result.succeeded()) co_return std::nullopt;
  co_return explain(result);
}

io::Task<Result<>> Installer::prepare_fonts(fs::path build, Deadline deadline) {
  const auto output = build / "out";
  auto prepare = [output, owner = workshop_.owner()] { return make_writable(output, owner); };
  auto prepared = co_await workers_.run(std::move(prepare));
  PRIMS_CO_RETURN_ON_ERROR(std::move(prepared));
  Job job{.argv = {kEnvironmentPython, "-I", "-c", "import matplotlib.font_manager"},
          .environment = {fmt::format("MPLCONFIGDIR={}", kOutputMount)},
          .files = {},
          .attachments = {readable(build / "env", kEnvironmentMount), writable(output, kOutputMount)},
          .indexes = {},
          .file_hosts = {},
          .deadline = deadline};
  auto ran = co_await workshop_.run(std::move(job));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto result, std::move(ran));
  auto keep = [environment = build / "env", output] { return keep_font_list(environment, output); };
  const auto kept = co_await workers_.run(std::move(keep));
  // Without it matplotlib looks for fonts in each run.
  if (!kept)
    log::warning("no font list for matplotlib: {}; {}", kept.error().message,
                 last_lines(to_utf8(result.err), 1));
  co_return Result<>();
}

io::Task<Result<std::variant<TreeSize, Diagnosis>>> Installer::install(fs::path build, Locked locked,
                                                                       std::vector<std::string> indexes,
                                                                       Progress progress, Deadline deadline) {
  const auto environment = build / "env";
  const auto interpreter = interpreter_;
  const bool has_matplotlib = locks_package(locked.lock, "matplotlib");
  const auto report = [&progress](const std::string& text) {
    if (progress) progress(text);
  };
  auto begin = [environment, interpreter, owner = workshop_.owner()] {
    return write_skeleton(environment, interpreter, owner);
  };
  auto begun = co_await workers_.run(std::move(begin));
  PRIMS_CO_RETURN_ON_ERROR(std::move(begun));
  report(fmt::format("installing {} packages", locked_packages(locked.lock).size()));
  auto unpacked = co_await unpack(build, std::move(locked), std::move(indexes), deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(auto failure, std::move(unpacked));
  if (failure) co_return *std::move(failure);

  auto rewrite = [environment, interpreter] { return write_interpreter_files(environment, interpreter); };
  auto rewritten = co_await workers_.run(std::move(rewrite));
  PRIMS_CO_RETURN_ON_ERROR(std::move(rewritten));
  auto compiled = co_await compiler_.compile(build, progress, deadline);
  PRIMS_CO_RETURN_ON_ERROR(std::move(compiled));
  if (has_matplotlib) {
    report("preparing fonts");
    auto prepared = co_await prepare_fonts(build, Deadline::after(kFontTime));
    PRIMS_CO_RETURN_ON_ERROR(std::move(prepared));
  }
  auto finish = [environment] { return finish_tree(environment); };
  auto finished = co_await workers_.run(std::move(finish));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto size, std::move(finished));
  co_return size;
}

}  // namespace prims::layers

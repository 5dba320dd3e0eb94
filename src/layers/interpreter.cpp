#include "layers/interpreter.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "json/json.h"
#include "layers/hash.h"
#include "layers/tool_process.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr int kOldestMinor = 9;
constexpr int kNewestMinor = 14;
constexpr std::size_t kMostAttempts = 24;
constexpr int kNoSuchCommand = 127;  // of shells, and of the shims that are scripts
constexpr const char* kSystemPrograms = "/usr/bin";

// Asks an interpreter for its facts. Runs isolated and without `site`, so nothing of the host's set-up takes
// part. The list of mapped files tells which shared libraries outside the prefix CPython needs (a libpython
// or OpenSSL of its own).
constexpr const char* kQuestions = R"(
import json, os, sys, sysconfig
base = getattr(sys, "_base_executable", None) or sys.executable
names = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)
stdlib = sysconfig.get_paths()["stdlib"]
if not hasattr(sys, "stdlib_module_names"):
    for folder in (stdlib, os.path.join(stdlib, "lib-dynload")):
        if os.path.isdir(folder):
            names |= {n.split(".")[0] for n in os.listdir(folder) if n.endswith((".py", ".so")) or "." not in n}
    names = {n for n in names if n.isidentifier() and n.islower()}
for module in ("ctypes", "ssl", "sqlite3", "zlib", "bz2", "lzma"):
    try:
        __import__(module)
    except ImportError:
        pass
mapped = set()
try:
    with open("/proc/self/maps") as maps:
        mapped = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
except OSError:
    pass
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "major": sys.version_info[0], "minor": sys.version_info[1],
    "base": os.path.realpath(base), "self": os.path.realpath(sys.executable),
    "prefix": os.path.realpath(sys.base_prefix), "exec_prefix": os.path.realpath(sys.base_exec_prefix),
    "stdlib": os.path.realpath(stdlib), "platstdlib": os.path.realpath(sysconfig.get_paths()["platstdlib"]),
    "cache_tag": sys.implementation.cache_tag or "",
    "abi": sysconfig.get_config_var("SOABI") or "", "platform": sysconfig.get_platform(),
    "names": sorted(names), "mapped": sorted(mapped),
}))
)";

struct Facts {
  std::string implementation, version, base, self, prefix, exec_prefix, stdlib, platstdlib, abi, platform,
      cache_tag;
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::vector<std::string> names, mapped;
};

std::vector<std::string> strings(const json::Object& object, std::string_view key) {
  std::vector<std::string> list;
  const auto* array = json::array_field(object, key);
  if (array == nullptr) return list;
  for (const auto& value : *array) {
    if (value.is_string()) list.push_back(json::text(value.as_string()));
  }
  return list;
}

Result<Facts> read_facts(const std::string& printed) {
  PRIMS_ASSIGN_OR_RETURN(const auto value, json::parse(printed));
  if (!value.is_object()) return fail(Kind::unavailable, "it printed no facts about itself");
  const auto& object = value.as_object();
  const auto field = [&](std::string_view key) { return json::string_field(object, key).value_or(""); };
  Facts facts{.implementation = field("implementation"),
              .version = field("version"),
              .base = field("base"),
              .self = field("self"),
              .prefix = field("prefix"),
              .exec_prefix = field("exec_prefix"),
              .stdlib = field("stdlib"),
              .platstdlib = field("platstdlib"),
              .abi = field("abi"),
              .platform = field("platform"),
              .cache_tag = field("cache_tag"),
              .major = json::integer_field(object, "major").value_or(0),
              .minor = json::integer_field(object, "minor").value_or(0),
              .names = strings(object, "names"),
              .mapped = strings(object, "mapped")};
  if (facts.base.empty() || facts.prefix.empty())
    return fail(Kind::unavailable, "it does not know its own path");
  return facts;
}

Result<Facts> ask(const std::string& program, const InterpreterSearch& search) {
  ToolCommand command{.argv = {program, "-I", "-S", "-c", kQuestions},
                      .environment = {"PATH=" + search.path, "HOME=" + search.home, "LC_ALL=C.UTF-8"}};
  if (!search.pyenv_root.empty()) command.environment.push_back("PYENV_ROOT=" + search.pyenv_root);
  PRIMS_ASSIGN_OR_RETURN(const auto output,
                         run_tool_blocking(command, Deadline::after(std::chrono::seconds(20))));
  if (output.status == kNoSuchCommand) {
    const auto said = to_utf8(output.err);
    return fail(Kind::not_found,
                "it is a shim that has no such version (" + said.substr(0, said.find('\n')) + ")");
  }
  if (output.status != 0) return fail(Kind::unavailable, last_lines(to_utf8(output.err), 1));
  return read_facts(output.out);
}

/// The facts of the interpreter behind a candidate: a virtual environment or a shim is followed to its base.
Result<Facts> ask_base(const std::string& program, const InterpreterSearch& search) {
  PRIMS_ASSIGN_OR_RETURN(auto facts, ask(program, search));
  if (facts.base == facts.self) return facts;
  return ask(facts.base, search);
}

Result<> accept(const Facts& facts) {
  if (facts.implementation != "cpython") {
    return fail(Kind::invalid_input, "it is " + facts.implementation + ", only CPython can run guests");
  }
  if (facts.major != 3 || facts.minor < kOldestMinor || facts.minor > kNewestMinor) {
    return fail(Kind::invalid_input, fmt::format("it is Python {}, supported are 3.{} to 3.{}", facts.version,
                                                 kOldestMinor, kNewestMinor));
  }
  return {};
}

bool lies_in(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory.back() == '/' ? directory : directory + "/");
}

/// Home directories that `prefix` might be or contain: this user's and that of whoever owns the prefix.
std::vector<std::string> homes(const std::string& prefix, const std::string& home) {
  std::vector<std::string> list;
  const auto add = [&list](const std::string& directory) {
    std::error_code failed;
    const auto real = fs::canonical(directory, failed);
    if (!failed) list.push_back(real.string());
  };
  const auto add_account = [&add](uid_t user) {
    std::array<char, 4096> buffer{};
    struct passwd account{};
    struct passwd* found = nullptr;
    if (::getpwuid_r(user, &account, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
      add(found->pw_dir);
  };
  if (!home.empty()) add(home);
  add_account(::geteuid());
  struct stat status{};
  if (::stat(prefix.c_str(), &status) == 0) add_account(status.st_uid);
  return list;
}

/// Whether a prefix holds more than an installation, so that binding it would show guests what is not
/// theirs: somebody's home or a parent of one, or a directory of the root (/opt, /srv), which many share.
bool is_broad(const std::string& prefix, const std::string& home) {
  if (prefix == "/" || fs::path(prefix).parent_path() == "/") return true;
  return std::ranges::any_of(homes(prefix, home),
                             [&](const std::string& directory) { return lies_in(directory, prefix); });
}

/// A prefix is bound whole unless it is broad; then only what CPython needs of it.
void add_prefix(const std::string& prefix, const Facts& facts, const std::string& home,
                std::vector<std::string>& into) {
  if (!is_broad(prefix, home)) {
    into.push_back(prefix);
    return;
  }
  into.insert(into.end(), {facts.base, facts.stdlib, facts.platstdlib});
  const auto headers = fmt::format("{}/include/python3.{}", prefix, facts.minor);
  if (fs::exists(headers)) into.push_back(headers);
}

std::vector<std::string> needed(const Facts& facts, const std::string& home) {
  std::vector<std::string> list;
  add_prefix(facts.prefix, facts, home, list);
  if (facts.exec_prefix != facts.prefix) add_prefix(facts.exec_prefix, facts, home, list);
  list.insert(list.end(), {facts.base, facts.stdlib, facts.platstdlib});
  for (const auto& file : facts.mapped) {
    const bool system = file.starts_with("/lib") || !file.starts_with('/');
    if (!system && file.find(".so") != std::string::npos && fs::exists(file)) list.push_back(file);
  }
  return outermost(std::move(list));
}

Interpreter to_interpreter(Facts facts, const std::string& home) {
  const auto identity = fmt::format("{} {} {} {} {}", facts.implementation, facts.version, facts.abi,
                                    facts.prefix, facts.platform);
  auto key = fmt::format("{}-{}-{}", facts.implementation, facts.version, sha256_hex(identity).substr(0, 12));
  auto directories = needed(facts, home);
  return Interpreter{.executable = facts.base,
                     .version = facts.version,
                     .key = std::move(key),
                     .cache_tag = std::move(facts.cache_tag),
                     .directories = std::move(directories),
                     .standard_library = std::move(facts.names)};
}

bool is_program(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> on_path(const std::string& name, const std::string& path) {
  std::vector<std::string> found;
  std::size_t start = 0;
  while (start <= path.size()) {
    const auto end = std::min(path.find(':', start), path.size());
    const auto file = path.substr(start, end - start) + "/" + name;
    // Relative entries of PATH depend on the working directory; they are not searched.
    if (file.front() == '/' && file != "/" + name && is_program(file)) found.push_back(file);
    start = end + 1;
  }
  return found;
}

/// Installations of pyenv, uv and conda below HOME: their directories start with the version.
std::vector<std::string> private_installations(const InterpreterSearch& search, const std::string& version) {
  std::vector<std::string> found;
  if (search.home.empty() && search.pyenv_root.empty()) return found;
  const auto pyenv = search.pyenv_root.empty() ? search.home + "/.pyenv" : search.pyenv_root;
  const std::pair<std::string, std::string> places[] = {
      {pyenv + "/versions", version}, {search.home + "/.local/share/uv/python", "cpython-" + version}};
  for (const auto& [folder, start] : places) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const auto name = entry.path().filename().string();
      const bool fits =
          name.starts_with(start) && (name.size() == start.size() || !std::isdigit(name[start.size()]));
      const auto program = entry.path().string() + "/bin/python3";
      if (fits && is_program(program)) found.push_back(program);
    }
  }
  // The newest release first: 3.13.0 before 3.9.18.
  std::ranges::sort(found,
                    [](const auto& a, const auto& b) { return ::strverscmp(a.c_str(), b.c_str()) > 0; });
  return found;
}

bool is_version(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos &&
         std::isdigit(text.front());
}

/// The version that a choice asks for: "3.13" of "3.13" and of "python3.13"; empty when it names none.
std::string version_in(const std::string& choice) {
  constexpr std::string_view kName = "python";
  if (is_version(choice)) return choice;
  if (!choice.starts_with(kName) || choice.find('.') == std::string::npos) return {};
  auto rest = choice.substr(kName.size());
  return is_version(rest) ? rest : std::string();
}

std::string minor_of(const std::string& version) {
  const auto first = version.find('.');
  const auto second = first == std::string::npos ? first : version.find('.', first + 1);
  return version.substr(0, second);
}

void append(std::vector<std::string>& list, std::vector<std::string> more) {
  for (auto& item : more) {
    if (std::ranges::find(list, item) == list.end()) list.push_back(std::move(item));
  }
}

std::vector<std::string> candidates(const InterpreterSearch& search) {
  const auto& choice = search.choice;
  std::vector<std::string> list;
  if (choice.find('/') != std::string::npos) {
    list.push_back(fs::is_directory(choice) ? choice + "/bin/python3" : fs::absolute(choice).string());
  } else if (const auto version = version_in(choice); !version.empty()) {
    const auto name = "python" + minor_of(version);
    append(list, on_path(name, search.path));
    append(list, private_installations(search, version));
    append(list, on_path("python3", search.path));
    append(list, on_path(name, kSystemPrograms));
  } else if (!choice.empty()) {
    append(list, on_path(choice, search.path));
  } else {
    append(list, on_path("python3", search.path));
    for (int minor = kNewestMinor; minor >= kOldestMinor; --minor) {
      append(list, on_path(fmt::format("python3.{}", minor), search.path));
    }
    // An almost empty environment has no PATH, or not the one that people have.
    append(list, private_installations(search, "3"));
    append(list, on_path("python3", kSystemPrograms));
  }
  if (list.size() > kMostAttempts) list.resize(kMostAttempts);
  return list;
}

bool has_version(const Facts& facts, const std::string& wanted) {
  return facts.version == wanted || facts.version.starts_with(wanted + ".");
}

}  // namespace

std::vector<std::string> outermost(std::vector<std::string> directories) {
  std::ranges::sort(directories);
  std::vector<std::string> kept;
  for (auto& directory : directories) {
    const bool covered =
        lies_in(directory, "/usr") ||
        std::ranges::any_of(kept, [&](const std::string& outer) { return lies_in(directory, outer); });
    if (!directory.empty() && !covered) kept.push_back(std::move(directory));
  }
  return kept;
}

InterpreterSearch search_from_environment(std::string choice) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return InterpreterSearch{.choice = std::move(choice),
                           .path = variable("PATH"),
                           .home = variable("HOME"),
                           .pyenv_root = variable("PYENV_ROOT")};
}

Result<Interpreter> find_interpreter(const InterpreterSearch& search) {
  std::string attempts;
  // A path is taken at its word.
  const auto version = version_in(search.choice);
  for (const auto& program : candidates(search)) {
    auto facts = ask_base(program, search);
    Result<> accepted = facts ? accept(*facts) : std::unexpected(facts.error());
    if (accepted && !version.empty() && !has_version(*facts, version)) {
      accepted = fail(Kind::not_found, "it is Python " + facts->version);
    }
    if (accepted) return to_interpreter(*std::move(facts), search.home);
    attempts += fmt::format("; {}: {}", program, accepted.error().message);
  }
  const auto wanted = search.choice.empty()
                          ? std::string("no usable CPython 3.9 to 3.14")
                          : fmt::format("no usable CPython for python = \"{}\"", search.choice);
  if (attempts.empty()) attempts = "; nothing of that name was found";
  return fail(Kind::not_found, wanted + attempts + "; set `python` to a path");
}

}  // namespace prims::layers

#include "server/settings.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "server/settings_file.h"
#include "server/settings_table.h"
#include "session/state.h"

namespace prims::server {
namespace {

// An empty variable counts as not set, as everywhere in the XDG specification.
std::optional<std::string> variable(const Sources& sources, const std::string& name) {
  const auto found = sources.environment.find(name);
  if (found == sources.environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  constexpr std::string_view kSpace = " \t\r\n";
  while (true) {
    const auto start = text.find_first_not_of(kSpace);
    if (start == std::string_view::npos) return found;
    text.remove_prefix(start);
    const auto end = std::min(text.find_first_of(kSpace), text.size());
    found.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const auto near = nearest(word, candidates);
  return near ? fmt::format("; did you mean {}?", *near) : "";
}

// Kubernetes writes PRIMS_PORT=tcp://10.0.0.1:9000 into every container when a service is named prims.
bool is_service_address(const Definition& setting, std::string_view value) {
  return setting.key == "port" && value.find("://") != std::string_view::npos;
}

// Applies one source after the other, weakest first, and remembers who spoke last.
class Loader {
 public:
  explicit Loader(const Sources& sources) : sources_(sources) {
    settings_.state_dir = session::default_state_directory(
        [this](const std::string& name) { return variable(sources_, name); });
  }

  Result<LoadedSettings> run() {
    PRIMS_RETURN_ON_ERROR(apply_file());
    PRIMS_RETURN_ON_ERROR(apply_environment());
    PRIMS_RETURN_ON_ERROR(apply_flags());
    expand_home();
    PRIMS_RETURN_ON_ERROR(check_together());
    warn_of_unknown_variables();
    LoadedSettings loaded{.settings = settings_, .file = file_, .warnings = std::move(warnings_)};
    for (const Definition& setting : settings_table()) {
      loaded.effective.push_back({std::string(setting.key), show(settings_, setting), origin(setting.key)});
    }
    return loaded;
  }

 private:
  std::string origin(std::string_view key) const {
    const auto found = origins_.find(std::string(key));
    return found == origins_.end() ? "default" : found->second;
  }

  Result<> apply(const Definition& setting, const std::vector<std::string>& texts, std::string origin) {
    if (const auto assigned = assign(settings_, setting, texts); !assigned) {
      return fail(Kind::invalid_input,
                  fmt::format("{}: {}: {}", origin, setting.key, assigned.error().message));
    }
    origins_[std::string(setting.key)] = std::move(origin);
    return {};
  }

  Result<> apply_file() {
    PRIMS_ASSIGN_OR_RETURN(file_, find_file());
    if (!file_) return {};
    PRIMS_ASSIGN_OR_RETURN(const std::vector<FileValue> values, read_settings_file(*file_));
    for (const FileValue& value : values) {
      const std::string origin = fmt::format("{}:{}", file_->string(), value.line);
      const Definition* setting = find_setting(value.key);
      if (setting == nullptr) {
        std::vector<std::string> keys;
        for (const Definition& known : settings_table()) keys.emplace_back(known.key);
        return fail(Kind::invalid_input,
                    fmt::format("{}: unknown setting {}{}", origin, value.key, suggestion(value.key, keys)));
      }
      if (value.is_array != is_list(*setting)) {
        return fail(Kind::invalid_input,
                    fmt::format("{}: {}: write {}", origin, value.key, accepted_values(*setting)));
      }
      PRIMS_RETURN_ON_ERROR(apply(*setting, value.texts, origin));
    }
    return {};
  }

  Result<std::optional<std::filesystem::path>> find_file() const {
    using Found = std::optional<std::filesystem::path>;
    if (sources_.config) return Found(*sources_.config);
    if (const auto named = variable(sources_, "PRIMS_CONFIG")) return Found(*named);
    for (const std::filesystem::path& candidate : configuration_files(sources_)) {
      struct stat info{};
      if (::stat(candidate.c_str(), &info) != 0) continue;
      // Found by search, not named: a file that somebody else left in the working directory must not steer
      // this process.
      if (info.st_uid != ::geteuid() && info.st_uid != 0) {
        return fail(Kind::denied,
                    fmt::format("{0} belongs to another user (uid {1}); to use it all the same: --config {0}",
                                candidate.string(), info.st_uid));
      }
      return Found(candidate);
    }
    return Found();
  }

  Result<> apply_environment() {
    for (const Definition& setting : settings_table()) {
      for (const std::string& name : variable_names(setting)) {
        const auto value = variable(sources_, name);
        if (!value) continue;
        if (is_service_address(setting, *value)) {
          warnings_.push_back(fmt::format(
              "the variable {} is ignored: {} is not a port but the address of a service", name, *value));
          continue;
        }
        const std::vector<std::string> texts = is_list(setting) ? words(*value) : std::vector{*value};
        PRIMS_RETURN_ON_ERROR(apply(setting, texts, name));
        break;
      }
    }
    return {};
  }

  Result<> apply_flags() {
    for (const Definition& setting : settings_table()) {
      std::vector<std::string> texts;
      for (const Sources::Flag& flag : sources_.flags) {
        if (flag.key == setting.key) texts.push_back(flag.value);
      }
      if (texts.empty()) continue;
      if (is_list(setting) && texts.size() == 1 && texts[0].empty()) texts.clear();
      PRIMS_RETURN_ON_ERROR(apply(setting, texts, flag_name(setting)));
    }
    return {};
  }

  // A file has no shell to do this.
  void expand_home() {
    const std::string text = settings_.state_dir.string();
    const auto home = variable(sources_, "HOME");
    if (home && text.starts_with("~/")) settings_.state_dir = std::filesystem::path(*home) / text.substr(2);
  }

  Result<> check_together() const {
    const auto conflict = [&](std::string_view smaller, std::string_view larger) {
      const auto shown = [&](std::string_view key) {
        return fmt::format("{} = {} ({})", key, show(settings_, *find_setting(key)), origin(key));
      };
      return fail(Kind::invalid_input, fmt::format("{} is more than {}", shown(smaller), shown(larger)));
    };
    if (settings_.timeout > settings_.max_timeout) return conflict("timeout", "max_timeout");
    if (settings_.shown_output > settings_.kept_output) return conflict("shown_output", "kept_output");
    if (settings_.pool_size > settings_.pool_total) return conflict("pool_size", "pool_total");
    return {};
  }

  // A variable may belong to a tool around us, so it is worth a word, not a refusal.
  void warn_of_unknown_variables() {
    std::vector<std::string> known = {"PRIMS_CONFIG"};
    for (const Definition& setting : settings_table()) known.push_back(variable_names(setting).front());
    for (const auto& [name, value] : sources_.environment) {
      if (!name.starts_with("PRIMS_") || std::ranges::find(known, name) != known.end()) continue;
      if (is_of_service(name)) continue;
      warnings_.push_back(
          fmt::format("the variable {} is not known and has no effect{}", name, suggestion(name, known)));
    }
  }

  // What comes along with PRIMS_PORT=tcp://..., which has had its word.
  bool is_of_service(std::string_view name) const {
    const auto port = variable(sources_, "PRIMS_PORT");
    return port && is_service_address(*find_setting("port"), *port) &&
           (name.starts_with("PRIMS_PORT_") || name.starts_with("PRIMS_SERVICE_"));
  }

  const Sources& sources_;
  Settings settings_;
  std::optional<std::filesystem::path> file_;
  std::map<std::string, std::string> origins_;
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::filesystem::path> configuration_files(const Sources& sources) {
  std::vector<std::filesystem::path> files = {sources.directory / "prims.toml"};
  if (const auto base = variable(sources, "XDG_CONFIG_HOME"); base && base->starts_with('/')) {
    files.push_back(std::filesystem::path(*base) / "prims/prims.toml");
  } else if (const auto home = variable(sources, "HOME")) {
    files.push_back(std::filesystem::path(*home) / ".config/prims/prims.toml");
  }
  files.emplace_back("/etc/prims/prims.toml");
  return files;
}

Result<LoadedSettings> load_settings(const Sources& sources) {
  return Loader(sources).run();
}

}  // namespace prims::server

// Values of settings as text: reading, checking, showing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "server/settings_table.h"

namespace prims::server {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

constexpr std::array kTiers = {Choice{"full", sandbox::Tier::full},
                               Choice{"namespaces", sandbox::Tier::namespaces}};
constexpr std::array kLevels = {Choice{"debug", log::Level::debug}, Choice{"info", log::Level::info},
                                Choice{"warning", log::Level::warning}, Choice{"error", log::Level::error}};

constexpr const auto& choices(sandbox::Tier) {
  return kTiers;
}
constexpr const auto& choices(log::Level) {
  return kLevels;
}

template <class T>
std::string choice_names(std::string_view separator) {
  std::vector<std::string_view> names;
  for (const auto& choice : choices(T{})) names.push_back(choice.name);
  return fmt::format("{}", fmt::join(names, separator));
}

template <class T>
std::string choice_name(T value) {
  for (const auto& choice : choices(value)) {
    if (choice.value == value) return std::string(choice.name);
  }
  return "none";
}

struct Unit {
  std::string_view name;
  std::uint64_t milliseconds;
};
constexpr std::array kUnits = {Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                               Unit{"s", 1000}, Unit{"ms", 1}};

// "30s", "2m", "1.5h", "250ms"; a bare number is seconds.
std::optional<std::uint64_t> parse_duration(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto* found = std::ranges::find(kUnits, unit.empty() ? "s" : unit, &Unit::name);
  if (found == kUnits.end()) return std::nullopt;
  const double milliseconds = number * static_cast<double>(found->milliseconds);
  if (milliseconds > 1e15) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(milliseconds));
}

std::string show_duration(std::uint64_t milliseconds) {
  if (milliseconds == 0) return "0s";
  for (const Unit& unit : kUnits) {
    if (milliseconds % unit.milliseconds == 0)
      return fmt::format("{}{}", milliseconds / unit.milliseconds, unit.name);
  }
  return fmt::format("{}ms", milliseconds);
}

// As parse_bytes reads it, exactly.
std::string show_size(std::uint64_t count) {
  constexpr std::array kNames = {Unit{"GiB", 1ULL << 30}, Unit{"MiB", 1ULL << 20}, Unit{"KiB", 1ULL << 10}};
  for (const Unit& unit : kNames) {
    if (count != 0 && count % unit.milliseconds == 0)
      return fmt::format("{}{}", count / unit.milliseconds, unit.name);
  }
  return std::to_string(count);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "true" || text == "on" || text == "1") return true;
  if (text == "false" || text == "off" || text == "0") return false;
  return std::nullopt;
}

std::string range(const Definition& setting, std::string (*shown)(std::uint64_t)) {
  if (setting.most == Definition{}.most) {
    return setting.least == 0 ? "" : fmt::format(", at least {}", shown(setting.least));
  }
  return fmt::format(", from {} to {}", shown(setting.least), shown(setting.most));
}

std::string show_number(std::uint64_t number) {
  return std::to_string(number);
}

}  // namespace

std::string accepted_values(const Definition& setting) {
  return std::visit(
      Overloaded{
          [](std::string Settings::*) -> std::string { return "text"; },
          [](std::filesystem::path Settings::*) -> std::string { return "a path"; },
          [](std::vector<std::string> Settings::*) -> std::string { return "a list of texts"; },
          [](bool Settings::*) -> std::string { return "true, false, on, off, 1 or 0"; },
          [&](std::uint16_t Settings::*) { return "a whole number" + range(setting, show_number); },
          [&](std::uint32_t Settings::*) { return "a whole number" + range(setting, show_number); },
          [&](Bytes Settings::*) { return "a size such as 512MiB" + range(setting, show_size); },
          [&](Milliseconds Settings::*) {
            return "a time such as 30s, 2m or 100 (seconds)" + range(setting, show_duration);
          },
          [](sandbox::Tier Settings::*) { return "one of " + choice_names<sandbox::Tier>(", "); },
          [](log::Level Settings::*) { return "one of " + choice_names<log::Level>(", "); },
      },
      setting.field);
}

std::string value_name(const Definition& setting) {
  return std::visit(Overloaded{
                        [](std::string Settings::*) -> std::string { return "TEXT"; },
                        [](std::filesystem::path Settings::*) -> std::string { return "DIR"; },
                        [](std::vector<std::string> Settings::*) -> std::string { return "TEXT..."; },
                        [](bool Settings::*) -> std::string { return ""; },
                        [](std::uint16_t Settings::*) -> std::string { return "NUMBER"; },
                        [](std::uint32_t Settings::*) -> std::string { return "NUMBER"; },
                        [](Bytes Settings::*) -> std::string { return "SIZE"; },
                        [](Milliseconds Settings::*) -> std::string { return "TIME"; },
                        [](sandbox::Tier Settings::*) { return choice_names<sandbox::Tier>("|"); },
                        [](log::Level Settings::*) { return choice_names<log::Level>("|"); },
                    },
                    setting.field);
}

namespace {

class Assigner {
 public:
  Assigner(Settings& settings, const Definition& setting, const std::vector<std::string>& texts)
      : settings_(settings), setting_(setting), texts_(texts) {}

  Result<> operator()(std::vector<std::string> Settings::* field) {
    settings_.*field = texts_;
    return {};
  }
  Result<> operator()(std::string Settings::* field) {
    if (texts_.back().empty() && setting_.when_empty.empty()) return refused();
    settings_.*field = texts_.back();
    return {};
  }
  Result<> operator()(std::filesystem::path Settings::* field) {
    if (texts_.back().empty()) return refused();
    settings_.*field = texts_.back();
    return {};
  }
  Result<> operator()(bool Settings::* field) { return store(field, parse_switch(texts_.back())); }
  Result<> operator()(std::uint16_t Settings::* field) {
    return store_number(field, parse_number(texts_.back()));
  }
  Result<> operator()(std::uint32_t Settings::* field) {
    return store_number(field, parse_number(texts_.back()));
  }
  Result<> operator()(Bytes Settings::* field) {
    const auto size = parse_bytes(texts_.back());
    if (!size || !in_range(size->count)) return refused();
    settings_.*field = *size;
    return {};
  }
  Result<> operator()(Milliseconds Settings::* field) {
    const auto span = parse_duration(texts_.back());
    if (!span || !in_range(*span)) return refused();
    settings_.*field = Milliseconds(static_cast<Milliseconds::rep>(*span));
    return {};
  }
  template <class T>
  Result<> operator()(T Settings::* field) {
    for (const auto& choice : choices(T{})) {
      if (choice.name == texts_.back()) {
        settings_.*field = choice.value;
        return {};
      }
    }
    return refused();
  }

 private:
  bool in_range(std::uint64_t number) const { return number >= setting_.least && number <= setting_.most; }

  std::unexpected<Error> refused() const {
    return fail(Kind::invalid_input,
                fmt::format("'{}' is not accepted; write {}", texts_.back(), accepted_values(setting_)));
  }

  template <class T>
  Result<> store(T Settings::* field, std::optional<T> value) {
    if (!value) return refused();
    settings_.*field = *value;
    return {};
  }

  template <class T>
  Result<> store_number(T Settings::* field, std::optional<std::uint64_t> number) {
    if (!number || !in_range(*number) || *number > std::numeric_limits<T>::max()) return refused();
    settings_.*field = static_cast<T>(*number);
    return {};
  }

  Settings& settings_;
  const Definition& setting_;
  const std::vector<std::string>& texts_;
};

}  // namespace

Result<> assign(Settings& settings, const Definition& setting, const std::vector<std::string>& texts) {
  if (texts.empty() && !is_list(setting)) return fail(Kind::internal, "no value");
  if (texts.size() > 1 && !is_list(setting)) {
    return fail(Kind::invalid_input, fmt::format("given {} times; write it once", texts.size()));
  }
  return std::visit(Assigner(settings, setting, texts), setting.field);
}

std::string show(const Settings& settings, const Definition& setting) {
  return std::visit(Overloaded{
                        [&](std::string Settings::* f) { return settings.*f; },
                        [&](std::filesystem::path Settings::* f) { return (settings.*f).string(); },
                        [&](std::vector<std::string> Settings::* f) {
                          return fmt::format("{}", fmt::join(settings.*f, " "));
                        },
                        [&](bool Settings::* f) -> std::string { return settings.*f ? "true" : "false"; },
                        [&](std::uint16_t Settings::* f) { return std::to_string(settings.*f); },
                        [&](std::uint32_t Settings::* f) { return std::to_string(settings.*f); },
                        [&](Bytes Settings::* f) { return show_size((settings.*f).count); },
                        [&](Milliseconds Settings::* f) {
                          return show_duration(static_cast<std::uint64_t>((settings.*f).count()));
                        },
                        [&](sandbox::Tier Settings::* f) { return choice_name(settings.*f); },
                        [&](log::Level Settings::* f) { return choice_name(settings.*f); },
                    },
                    setting.field);
}

std::string limits_table() {
  std::string text = "| limit | default | setting |\n|---|---|---|\n";
  const Settings defaults;
  for (const Definition& setting : settings_table()) {
    if (setting.group != kLimitsGroup) continue;
    text += fmt::format("| {} | {} | `{}` |\n", setting.help, show(defaults, setting), setting.key);
  }
  return text;
}

std::string settings_reference() {
  std::string text =
      "# Settings\n\n"
      "Every setting can be given as a flag, as an environment variable, or in one TOML file, in this order "
      "of strength.\n"
      "`prims config` shows the value that holds and where it came from. This page is what `prims config "
      "--reference` prints.\n\n"
      "The file is the first of: the one named by `--config`, the one named by `PRIMS_CONFIG`, "
      "`./prims.toml`,\n"
      "`$XDG_CONFIG_HOME/prims/prims.toml` (or `~/.config/prims/prims.toml`), `/etc/prims/prims.toml`. An "
      "unknown key or a value\n"
      "that is not accepted is an error. Sizes are written as `64KiB`, `512MiB`, `2GiB`; times as `250ms`, "
      "`30s`, `2m`, `1h`, or a\n"
      "number of seconds. A list is an array in the file, words separated by spaces in a variable, and a "
      "flag that is repeated.\n"
      "A variable that is empty counts as not set. An unknown variable that starts with `PRIMS_`, and a port "
      "that is the address of\n"
      "a service (`tcp://...`, as Kubernetes sets it), are ignored with a warning.\n";
  const Settings defaults;
  std::string_view group;
  for (const Definition& setting : settings_table()) {
    if (setting.group != group) {
      group = setting.group;
      text += fmt::format("\n## {}\n\n| key | default | accepted | meaning |\n|---|---|---|---|\n", group);
    }
    std::string names = fmt::format("`{}`<br>`{}`", setting.key, flag_name(setting));
    for (const std::string& variable : variable_names(setting)) names += fmt::format("<br>`{}`", variable);
    const std::string value = show(defaults, setting);
    const std::string shown = value.empty() ? std::string(setting.when_empty) : fmt::format("`{}`", value);
    text += fmt::format("| {} | {} | {} | {} |\n", names, shown, accepted_values(setting), setting.help);
  }
  return text;
}

}  // namespace prims::server

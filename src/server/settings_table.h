// The one table of settings: names, types, ranges and help. Everything that lists or reads settings follows
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "server/settings.h"

namespace prims::server {

/// The group of settings that bound one run.
inline constexpr std::string_view kLimitsGroup = "Limits of one run";

/// Where a setting lives; its alternative is the setting's type.
using Field = std::variant<std::string Settings::*, std::filesystem::path Settings::*,
                           std::vector<std::string> Settings::*, bool Settings::*, std::uint16_t Settings::*,
                           std::uint32_t Settings::*, Bytes Settings::*, Milliseconds Settings::*,
                           sandbox::Tier Settings::*, log::Level Settings::*>;

struct Definition {
  std::string_view group;
  std::string_view
      key;  ///< in the TOML file; the flag is --key with dashes, the variable PRIMS_KEY in capitals
  Field field;
  std::string_view help;
  std::uint64_t least = 0;  ///< of a number; bytes for sizes, milliseconds for durations
  std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  std::string_view older_variable = {};  ///< read when the variable is not set
  std::string_view when_empty = {};      ///< what an empty value means
};

std::span<const Definition> settings_table();
const Definition* find_setting(std::string_view key);

std::string flag_name(const Definition& setting);
/// Strongest first.
std::vector<std::string> variable_names(const Definition& setting);

/// What stands for the value in help: "NUMBER", "SIZE", "full|namespaces"; empty for a switch.
std::string value_name(const Definition& setting);

bool is_list(const Definition& setting);
bool is_switch(const Definition& setting);

/// What one may write: "a size such as 512MiB, from 64 KiB to 16 GiB".
std::string accepted_values(const Definition& setting);

/// Reads and stores a value. Several texts are the items of a list. An Error says what is accepted.
Result<> assign(Settings& settings, const Definition& setting, const std::vector<std::string>& texts);

/// A value as one would write it.
std::string show(const Settings& settings, const Definition& setting);

/// The table of default limits in README.md.
std::string limits_table();

/// docs/settings.md: every setting with its names, default, range and meaning.
std::string settings_reference();

}  // namespace prims::server

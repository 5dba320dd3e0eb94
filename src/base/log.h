// The program's own log: one line per event on standard error, never on standard output (which is a protocol
// channel under `stdio`). Code, output and handles of users are never logged.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace prims::log {

enum class Level { debug, info, warning, error };

/// The least level that is written. Default: info. Set once at start.
void set_level(Level level);

void write(Level level, std::string_view line);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace prims::log

// Texts that differ in every call, so that nothing between here and the interpreter can answer from memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// Eight characters, so that replacing it by eight digits keeps every length.
inline constexpr std::string_view kUnique = "%UNIQUE%";

/// Eight-digit numbers, each given once by this process; where they begin is random.
std::uint32_t next_unique();

/// `text` with every kUnique replaced by the number.
std::string with_unique(std::string_view text, std::uint32_t number);

/// Whether every line of `expected` stands somewhere in `text`, with its kUnique replaced.
bool holds(std::string_view text, std::string_view expected, std::uint32_t number);

std::string read_file(const std::string& path);
std::vector<std::string> read_lines(const std::string& path);

/// Ends the program with a message.
[[noreturn]] void give_up(const std::string& why);
/// The same with what errno says.
[[noreturn]] void give_up_with_errno(const std::string& what);

}  // namespace bench

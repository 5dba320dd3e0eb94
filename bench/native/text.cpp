#include "text.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

namespace bench {

std::uint32_t next_unique() {
  constexpr std::uint32_t kFirst = 10'000'000;
  static std::uint32_t number = kFirst + std::random_device{}() % 80'000'000;
  return number++;
}

std::string with_unique(std::string_view text, std::uint32_t number) {
  std::string out(text);
  const std::string digits = std::to_string(number);
  for (auto at = out.find(kUnique); at != std::string::npos; at = out.find(kUnique, at)) {
    out.replace(at, kUnique.size(), digits);
  }
  return out;
}

bool holds(std::string_view text, std::string_view expected, std::uint32_t number) {
  std::istringstream lines(with_unique(expected, number));
  for (std::string line; std::getline(lines, line);) {
    if (text.find(line) == std::string_view::npos) return false;
  }
  return true;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) give_up("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> read_lines(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line + "\n");
  return lines;
}

void give_up(const std::string& why) {
  std::fprintf(stderr, "probe: %s\n", why.c_str());
  std::exit(1);
}

void give_up_with_errno(const std::string& what) {
  give_up(what + ": " + std::strerror(errno));
}

}  // namespace bench

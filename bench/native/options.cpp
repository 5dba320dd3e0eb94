#include "options.h"

#include <cstdlib>

#include "text.h"

namespace bench {

Options::Options(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) give_up("no command");
  command_ = words[0];
  for (std::size_t i = 1; i < words.size(); i += 2) {
    if (words[i] == "--") {
      program_.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      return;
    }
    if (!words[i].starts_with("--") || i + 1 == words.size())
      give_up("not an option with a value: " + words[i]);
    values_[words[i].substr(2)] = words[i + 1];
  }
}

std::string Options::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

std::int64_t Options::number(const std::string& name, std::int64_t otherwise) const {
  const std::string value = text(name);
  if (value.empty()) return otherwise;
  char* end = nullptr;
  const long long number = std::strtoll(value.c_str(), &end, 10);
  if (*end != '\0') give_up("--" + name + " takes a whole number");
  return number;
}

Schedule Options::schedule() const {
  Schedule schedule;
  schedule.count = number("count", 1) + warm_up();
  const std::int64_t rate = number("rate", 0);
  if (rate > 0) schedule.period = 1'000'000'000 / rate;
  schedule.start = number("start", 0);
  if (schedule.start == 0) schedule.start = now();
  return schedule;
}

}  // namespace bench

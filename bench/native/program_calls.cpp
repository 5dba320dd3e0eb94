// Programs: one that answers lines for as long as it runs, and ones that are started for each sample.
#include <sys/wait.h>

#include <cstdlib>
#include <map>

#include "child.h"
#include "commands.h"
#include "text.h"

namespace bench {
namespace {

std::vector<std::string> line_with_unique(const std::vector<std::string>& line, std::uint32_t number) {
  std::vector<std::string> out;
  for (const std::string& word : line) out.push_back(with_unique(word, number));
  return out;
}

bool is_request(const std::string& line) {
  return line.find("\"id\"") != std::string::npos;
}

// The answer to a request, whatever notifications come before it.
std::string read_answer(Child& program) {
  for (;;) {
    std::string line = program.read_line();
    if (is_request(line) && line.find("\"method\"") == std::string::npos) return line;
  }
}

std::string converse(Child& program, const std::vector<std::string>& lines) {
  std::string answer;
  for (const std::string& line : lines) {
    program.write(line);
    if (is_request(line)) answer = read_answer(program);
  }
  return answer;
}

// Waits for the moment a call is due; from when its time counts.
Nanoseconds wait_for_turn(const Schedule& schedule, std::int64_t index) {
  if (schedule.period == 0) return now();
  const Nanoseconds due = schedule.due(index);
  if (due < now()) return due;  // late because of the call before: that wait is part of this one's time
  sleep_until(due);
  return now();
}

// Requests to a program that may have several at once: at a fixed rate whatever the answers do, or one by
// one.
class LineCalls {
 public:
  LineCalls(const Options& options, Child& program)
      : program_(program),
        request_(read_file(options.text("request"))),
        expected_(options.text("expect")),
        schedule_(options.schedule()),
        samples_(options.warm_up()) {}

  Samples run() {
    const bool paced = schedule_.period > 0;
    for (std::int64_t i = 0; i < schedule_.count; ++i) {
      if (paced) take_answers_until(schedule_.due(i));
      start();
      if (!paced) take_answer(program_.read_line());
    }
    while (!started_.empty()) take_answer(program_.read_line());
    return samples_;
  }

 private:
  void start() {
    const std::uint32_t number = next_unique();
    const std::string line = with_unique(request_, number);
    started_[number] = now();
    program_.write(line);
  }

  void take_answers_until(Nanoseconds end) {
    while (const auto line = program_.read_line_until(end)) take_answer(*line);
  }

  void take_answer(const std::string& line) {
    const Nanoseconds ended = now();
    const auto id = line.find("\"id\":");
    if (id == std::string::npos) return;  // a notification
    const auto number = static_cast<std::uint32_t>(std::strtoul(line.c_str() + id + 5, nullptr, 10));
    const auto call = started_.find(number);
    if (call == started_.end()) return samples_.add_failure("an answer to nothing: " + line);
    if (holds(line, expected_, number)) {
      samples_.add(call->second, ended);
    } else {
      samples_.add_failure(line);
    }
    started_.erase(call);
  }

  Child& program_;
  const std::string request_;
  const std::string expected_;
  const Schedule schedule_;
  Samples samples_;
  std::map<std::uint32_t, Nanoseconds> started_;  ///< calls that have no answer yet, by id
};

}  // namespace

Samples stdio_calls(const Options& options) {
  Child program(options.program());
  converse(program, read_lines(options.text("lines")));
  return LineCalls(options, program).run();
}

Samples program_starts(const Options& options) {
  const std::vector<std::string> lines = read_lines(options.text("lines"));
  const std::string expected = options.text("expect");
  const Schedule schedule = options.schedule();
  Samples samples(options.warm_up());
  for (std::int64_t i = 0; i < schedule.count; ++i) {
    const Nanoseconds started = wait_for_turn(schedule, i);
    Child program(options.program());
    const std::string answer = converse(program, lines);
    const Nanoseconds ended = now();
    if (holds(answer, expected, 0)) {
      samples.add(started, ended);
    } else {
      samples.add_failure(answer);
    }
  }
  return samples;
}

Samples program_runs(const Options& options) {
  const std::string expected = options.text("expect");
  const Schedule schedule = options.schedule();
  Samples samples(options.warm_up());
  for (std::int64_t i = 0; i < schedule.count; ++i) {
    const std::uint32_t number = next_unique();
    const std::vector<std::string> line = line_with_unique(options.program(), number);
    const Nanoseconds started = wait_for_turn(schedule, i);
    Child program(line);
    program.close_input();
    const std::string output = program.read_all();
    const int status = program.wait();
    const Nanoseconds ended = now();
    if (status == 0 && holds(output, expected, number)) {
      samples.add(started, ended);
    } else {
      samples.add_failure("wait status " + std::to_string(status) + ", output: " + output);
    }
  }
  return samples;
}

}  // namespace bench

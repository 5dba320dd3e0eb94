#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/unique_fd.h"
#include "cli/commands.h"
#include "cli/explanation.h"
#include "cli/read_file.h"
#include "cli/terminal.h"
#include "server/app.h"

namespace prims::cli {
namespace {

constexpr Bytes kMaxProgram = mib(16);

/// The program's output as it comes. When nobody reads it any more, the run ends.
class Output {
 public:
  Output(ProgressLine& progress, std::shared_ptr<io::Cancellation> cancellation)
      : progress_(progress), cancellation_(std::move(cancellation)) {}

  void write(python::Stream stream, std::string_view bytes) {
    progress_.clear();
    const int fd = stream == python::Stream::out ? STDOUT_FILENO : STDERR_FILENO;
    if (broken_) return;
    if (const auto written = write_all(fd, bytes); !written) {
      broken_ = true;
      piped_ = written.error().kind == Kind::cancelled;
      if (!piped_) complain(written.error().message);
      cancellation_->request();
    }
  }

  bool broken_pipe() const { return broken_ && piped_; }

 private:
  ProgressLine& progress_;
  std::shared_ptr<io::Cancellation> cancellation_;
  bool broken_ = false;
  bool piped_ = false;
};

// A background job that reads its terminal is stopped, and its program never asked for that.
bool is_somebody_elses_terminal(int fd) {
  return ::isatty(fd) == 1 && ::tcgetpgrp(fd) != ::getpgrp();
}

// Standard input for the program in the sandbox; none when there is nothing to pass on.
std::optional<python::Input> program_input() {
  if (is_somebody_elses_terminal(STDIN_FILENO)) return std::nullopt;
  UniqueFd input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!input) return std::nullopt;
  return input;
}

Result<server::RunRequest> make_request(const RunCommand& command) {
  server::RunRequest request;
  if (command.code) {
    request.code = *command.code;
  } else {
    PRIMS_ASSIGN_OR_RETURN(request.code, read_file(command.file, kMaxProgram));
  }
  if (command.code || command.file != "-") request.input = program_input();
  request.arguments = command.arguments;
  request.requirements = command.requirements;
  request.output_directory = command.output;
  return request;
}

// As a program that never caught the signal would end.
[[noreturn]] void end_by(int signal_number) {
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
  ::_exit(server::exit_status::kSignalBase + signal_number);
}

}  // namespace

int run(const RunCommand& command, const server::LoadedSettings& loaded) {
  auto request = make_request(command);
  if (!request) {
    complain(request.error().message);
    return server::exit_status::kUsage;
  }
  ProgressLine progress;
  Output output(progress, request->cancellation);
  request->on_progress = [&](const std::string& sentence) { progress.show(sentence); };
  if (command.form == Form::text) {
    request->on_output = [&](python::Stream stream, std::string_view bytes) { output.write(stream, bytes); };
  }
  const server::RunOutcome outcome = server::run_once(loaded.settings, std::move(*request));
  progress.clear();
  if (output.broken_pipe()) end_by(SIGPIPE);
  if (command.form == Form::json) {
    print(json::write(outcome.result) + "\n");
  } else {
    for (const std::string& sentence : explanation(outcome.result)) complain(sentence);
  }
  return outcome.exit_status;
}

}  // namespace prims::cli

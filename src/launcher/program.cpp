#include "launcher/program.h"

#include <signal.h>
#include <unistd.h>

#include "launcher/kernel.h"

namespace prims::launcher {
namespace {

Failure read_strings(wire::Reader& reader, std::uint32_t count, char** strings) {
  if (count > wire::kMaxStrings) return Failure{"start: too many strings", E2BIG};
  for (std::uint32_t i = 0; i < count; ++i) strings[i] = const_cast<char*>(reader.text().data());
  strings[count] = nullptr;
  return reader.good() ? Failure{} : Failure{"start: truncated", EPROTO};
}

}  // namespace

Failure read_program(wire::Reader& reader, const Message& message, Program& program) {
  const auto header = reader.value<wire::StartHeader>();
  program.directory = reader.text().data();
  LAUNCHER_TRY(read_strings(reader, header.arguments, program.arguments));
  LAUNCHER_TRY(read_strings(reader, header.variables, program.environment));
  if (header.arguments == 0 || program.directory == nullptr) return Failure{"start: no program", EPROTO};
  return park(message, 0, header.missing, program.descriptors);
}

Failure become(const Program& program) {
  LAUNCHER_TRY(place(program.descriptors));
  LAUNCHER_TRY(check("setsid", setsid()));
  LAUNCHER_TRY(check("chdir", chdir(program.directory)));
  sigset_t none;
  sigemptyset(&none);
  LAUNCHER_TRY(check("unblock signals", sigprocmask(SIG_SETMASK, &none, nullptr)));
  return check("exec", execve(program.arguments[0], program.arguments, program.environment));
}

Failure start_program(wire::Reader& request, const Message& message, pid_t& pid) {
  static Program program;
  static Failure inside;
  Failure failure = read_program(request, message, program);
  if (!failure) {
    pid = vfork();
    if (pid == 0) {
      inside = become(program);
      kernel::shared_with_vfork(&inside);
      _exit(127);
    }
    failure = check("vfork", pid);
    kernel::shared_with_vfork(&inside);
    if (!failure) failure = inside;
  }
  close_all(message);
  close_all(program.descriptors);
  return failure;
}

}  // namespace prims::launcher

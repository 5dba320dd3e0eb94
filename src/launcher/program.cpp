#include "launcher/program.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "launcher/kernel.h"

namespace prims::launcher {
namespace {

constexpr int kStandard = 3;
/// Where descriptors wait until they get their numbers, out of the way of these.
constexpr int kParking = 64;

struct Program {
  const char* directory = nullptr;
  char* arguments[wire::kMaxStrings + 1] = {};
  char* environment[wire::kMaxStrings + 1] = {};
  int descriptors[wire::kMaxDescriptors + kStandard] = {};
  int count = 0;
};

Failure read_strings(wire::Reader& reader, std::uint32_t count, char** strings) {
  if (count > wire::kMaxStrings) return Failure{"start: too many strings", E2BIG};
  for (std::uint32_t i = 0; i < count; ++i) strings[i] = const_cast<char*>(reader.text().data());
  strings[count] = nullptr;
  return reader.good() ? Failure{} : Failure{"start: truncated", EPROTO};
}

Failure park(int fd, Program& program) {
  const int parked = fcntl(fd, F_DUPFD_CLOEXEC, kParking);
  program.descriptors[program.count] = parked;
  LAUNCHER_TRY(check("park descriptor", parked));
  ++program.count;
  return {};
}

/// Those that the message lacks among 0, 1, 2 are /dev/null, which init has as its own.
Failure park_all(const Message& message, std::uint32_t missing, Program& program) {
  std::size_t next = 0;
  while (program.count < kStandard || next < message.descriptor_count) {
    const int number = program.count;
    const bool absent = number < kStandard && (missing & (1U << number)) != 0;
    if (!absent && next == message.descriptor_count) return Failure{"start: descriptors", EPROTO};
    LAUNCHER_TRY(park(absent ? number : message.descriptors[next++], program));
  }
  return {};
}

Failure decode_start(wire::Reader& reader, const Message& message, Program& program) {
  const auto header = reader.value<wire::StartHeader>();
  program.directory = reader.text().data();
  LAUNCHER_TRY(read_strings(reader, header.arguments, program.arguments));
  LAUNCHER_TRY(read_strings(reader, header.variables, program.environment));
  if (header.arguments == 0 || program.directory == nullptr) return Failure{"start: no program", EPROTO};
  return park_all(message, header.missing, program);
}

/// In the new process, which still shares init's memory.
Failure execute(const Program& program) {
  for (int number = 0; number < program.count; ++number) {
    LAUNCHER_TRY(check("dup2", dup2(program.descriptors[number], number)));
  }
  const auto first_unused = static_cast<unsigned>(program.count);
  LAUNCHER_TRY(check("close descriptors", kernel::close_range(first_unused, ~0U, 0)));
  LAUNCHER_TRY(check("setsid", setsid()));
  LAUNCHER_TRY(check("chdir", chdir(program.directory)));
  sigset_t none;
  sigemptyset(&none);
  LAUNCHER_TRY(check("unblock signals", sigprocmask(SIG_SETMASK, &none, nullptr)));
  return check("exec", execve(program.arguments[0], program.arguments, program.environment));
}

}  // namespace

Failure start_program(wire::Reader& request, const Message& message, pid_t& pid) {
  static Program program;
  static Failure inside;
  Failure failure = decode_start(request, message, program);
  if (!failure) {
    pid = vfork();
    if (pid == 0) {
      inside = execute(program);
      kernel::shared_with_vfork(&inside);
      _exit(127);
    }
    failure = check("vfork", pid);
    kernel::shared_with_vfork(&inside);
    if (!failure) failure = inside;
  }
  for (std::size_t i = 0; i < message.descriptor_count; ++i) close(message.descriptors[i]);
  for (int i = 0; i < program.count; ++i) close(program.descriptors[i]);
  return failure;
}

}  // namespace prims::launcher

#include "sandbox/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace prims::sandbox {
namespace {

constexpr int kPatienceMs = 5000;

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  (void)::pipe2(ends, O_CLOEXEC);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// What a child tells about its attempt, in one write that a pipe keeps whole.
struct Report {
  int failed = 1;
  int error = 0;
  std::array<char, 120> step{};
};

Report report_of(const Attempt& attempt) {
  Report report;
  report.failed = attempt ? 0 : 1;
  if (attempt) return report;
  report.error = attempt.error().error;
  std::strncpy(report.step.data(), attempt.error().step.c_str(), report.step.size() - 1);
  return report;
}

Attempt write_text(const std::string& path, std::string_view text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return expect(fmt::format("open {}", path).c_str(), -1);
  return expect(fmt::format("write {}", path).c_str(), ::write(file.get(), text.data(), text.size()));
}

Attempt write_maps(pid_t pid, SandboxUser user) {
  const auto line = [](uid_t outside) { return fmt::format("{} {} 1", SandboxUser::kInside, outside); };
  PRIMS_RETURN_ON_ERROR(write_text(fmt::format("/proc/{}/setgroups", pid), "deny"));
  PRIMS_RETURN_ON_ERROR(write_text(fmt::format("/proc/{}/uid_map", pid), line(user.outside)));
  return write_text(fmt::format("/proc/{}/gid_map", pid), line(user.outside_group));
}

Attempt receive_report(const Pipe& pipe, pid_t child) {
  pollfd readable{pipe.reader.get(), POLLIN, 0};
  Report report;
  const bool timely = ::poll(&readable, 1, kPatienceMs) == 1;
  const bool whole = timely && ::read(pipe.reader.get(), &report, sizeof report) == sizeof report;
  if (!whole) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!timely) return std::unexpected(FailedStep{"wait for the attempt", ETIMEDOUT});
  if (!whole) return std::unexpected(FailedStep{fmt::format("survive (wait status {})", status), EPERM});
  if (report.failed == 0) return {};
  return std::unexpected(FailedStep{report.step.data(), report.error});
}

}  // namespace

Attempt expect(const char* step, long result) {
  if (result < 0) return std::unexpected(FailedStep{step, errno});
  return {};
}

Attempt try_in_child(const std::function<Attempt()>& body) {
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child < 0) return expect("fork", -1);
  if (child == 0) {
    const Report report = report_of(body());
    ::_exit(::write(pipe.writer.get(), &report, sizeof report) == sizeof report ? 0 : 1);
  }
  pipe.writer.reset();
  return receive_report(pipe, child);
}

/// The maps are written from outside, by a helper that stays there: only there root may name another user
/// than itself.
Attempt enter_namespaces(SandboxUser user, int flags) {
  Pipe entered = make_pipe();
  Pipe told = make_pipe();
  const pid_t self = ::getpid();
  const pid_t helper = ::fork();
  if (helper < 0) return expect("fork", -1);
  if (helper == 0) {
    entered.writer.reset();
    char byte = 0;
    if (::read(entered.reader.get(), &byte, 1) != 1) ::_exit(1);
    const Report report = report_of(write_maps(self, user));
    ::_exit(::write(told.writer.get(), &report, sizeof report) == sizeof report ? 0 : 1);
  }
  told.writer.reset();
  if (const Attempt moved = expect("unshare", ::unshare(CLONE_NEWUSER | flags)); !moved) {
    entered.writer.reset();
    ::waitpid(helper, nullptr, 0);
    return moved;
  }
  PRIMS_RETURN_ON_ERROR(expect("tell the helper", ::write(entered.writer.get(), "x", 1)));
  PRIMS_RETURN_ON_ERROR(receive_report(told, helper));
  PRIMS_RETURN_ON_ERROR(
      expect("setresgid", ::setresgid(SandboxUser::kInside, SandboxUser::kInside, SandboxUser::kInside)));
  return expect("setresuid", ::setresuid(SandboxUser::kInside, SandboxUser::kInside, SandboxUser::kInside));
}

Attempt enter_mount_namespace(SandboxUser user, int more_flags) {
  PRIMS_RETURN_ON_ERROR(enter_namespaces(user, CLONE_NEWNS | more_flags));
  PRIMS_RETURN_ON_ERROR(
      expect("make / private", ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr)));
  return expect("mount tmpfs", ::mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0700"));
}

}  // namespace prims::sandbox

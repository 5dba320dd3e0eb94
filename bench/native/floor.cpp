// The floor: the least that "a fresh interpreter, fully isolated" costs when nothing is prepared ahead.
//
// An embedded CPython is started and warmed once. Every run forks it into new user, pid, mount, ipc, uts,
// cgroup and network namespaces with a proc and two tmpfs of its own, runs one line there, and waits for its
// end. No seccomp filter, no limits, no root of its own, no protocol: a sandbox that does all of that has
// more to do, not less.
//
//   floor run       [--imports a,b] [--code TEXT] SCHEDULE     durations of runs
//   floor sustained [--imports a,b] --seconds S --workers N    as many as N warm interpreters can do
#include <Python.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <vector>

#include "options.h"
#include "text.h"
#include "timing.h"

namespace bench {
namespace {

constexpr unsigned long kNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET;

void start_interpreter(const std::string& imports) {
  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  const PyStatus status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) give_up("Python does not start");
  // The first compilation and the first print cost far more than later ones.
  const std::string warm_up =
      "import gc, os, sys\n"
      "for name in filter(None, '" +
      imports +
      "'.split(',')): __import__(name)\n"
      "exec(compile('x = 1', 'warm', 'exec'), {})\n"
      "with open(os.devnull, 'w') as nowhere: print('warm', file=nowhere)\n"
      "gc.collect(); gc.freeze()\n";
  if (PyRun_SimpleString(warm_up.c_str()) != 0) give_up("the warm-up failed");
}

void write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, text.data(), text.size()) < 0) give_up_with_errno(path);
  ::close(fd);
}

void mount_or_give_up(const char* type, const char* where, unsigned long flags) {
  if (::mount(type, where, type, flags, nullptr) != 0) give_up_with_errno(where);
}

void settle_in_namespaces(uid_t uid, gid_t gid) {
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", "1000 " + std::to_string(uid) + " 1");
  write_file("/proc/self/gid_map", "1000 " + std::to_string(gid) + " 1");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) give_up_with_errno("/");
  mount_or_give_up("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  mount_or_give_up("tmpfs", "/tmp", MS_NOSUID | MS_NODEV);
  mount_or_give_up("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV);
}

[[noreturn]] void live(const std::string& code, int output, uid_t uid, gid_t gid) {
  PyOS_AfterFork_Child();
  settle_in_namespaces(uid, gid);
  ::dup2(output, STDOUT_FILENO);
  const int failed = PyRun_SimpleString(code.c_str());
  Py_XDECREF(PyObject_CallMethod(PySys_GetObject("stdout"), "flush", nullptr));
  ::_exit(failed == 0 ? 0 : 1);
}

std::string read_to_end(int fd) {
  std::string text;
  char bytes[4096];
  for (ssize_t got; (got = ::read(fd, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(got));
  return text;
}

// One line in a fork of its own; what it printed.
std::string run_once(const std::string& code) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  int output[2];
  if (::pipe2(output, O_CLOEXEC) != 0) give_up_with_errno("pipe");
  PyOS_BeforeFork();
  const long pid = ::syscall(SYS_clone, kNamespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) live(code, output[1], uid, gid);
  PyOS_AfterFork_Parent();
  if (pid < 0) give_up_with_errno("clone into new namespaces");
  ::close(output[1]);
  std::string text = read_to_end(output[0]);
  ::close(output[0]);
  ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return text;
}

struct Code {
  explicit Code(const Options& options)
      : text(options.text("code").empty() ? "print('hi %UNIQUE%')" : options.text("code")),
        expected(options.text("expect").empty() ? "hi %UNIQUE%" : options.text("expect")) {}

  // Runs it as another text than ever before; whether it printed what it should.
  bool run() const {
    const std::uint32_t number = next_unique();
    return holds(run_once(with_unique(text, number)), expected, number);
  }

  std::string text;
  std::string expected;
};

Samples run_on_schedule(const Options& options) {
  const Code code(options);
  Samples samples(options.warm_up());
  start_interpreter(options.text("imports"));
  const Schedule schedule = options.schedule();
  for (std::int64_t i = 0; i < schedule.count; ++i) {
    if (schedule.period > 0) sleep_until(schedule.due(i));
    const Nanoseconds started = now();
    if (code.run()) {
      samples.add(started, now());
    } else {
      samples.add_failure("the line printed something else");
    }
  }
  return samples;
}

struct Run {
  Nanoseconds started;
  Nanoseconds ended;
};

/// What one worker has done, in memory that it shares with the one that waits for it.
struct Tally {
  static constexpr std::size_t kMost = 1 << 20;
  std::size_t count;
  Run runs[kMost];
};

void work(const Options& options, Tally* tally, Nanoseconds begin, Nanoseconds end) {
  const Code code(options);
  start_interpreter(options.text("imports"));
  if (!code.run()) give_up("the line printed something else");
  sleep_until(begin);
  for (Nanoseconds started = now(); started < end && tally->count < Tally::kMost; started = now()) {
    if (!code.run()) give_up("the line printed something else");
    tally->runs[tally->count++] = {started, now()};
  }
}

Samples run_as_many_as_possible(const Options& options) {
  constexpr Nanoseconds kTimeToWarmUp = 2'000'000'000;
  const Nanoseconds begin = now() + kTimeToWarmUp;
  const Nanoseconds end = begin + options.number("seconds", 5) * 1'000'000'000;
  std::vector<Tally*> tallies;
  for (std::int64_t i = 0; i < options.number("workers", 1); ++i) {
    void* shared = ::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) give_up_with_errno("mmap");
    tallies.push_back(static_cast<Tally*>(shared));
    if (::fork() == 0) {
      work(options, tallies.back(), begin, end);
      ::_exit(0);
    }
  }
  Samples samples(0);
  for (int status = 0; ::wait(&status) > 0;) {
    if (status != 0) samples.add_failure("a worker failed");
  }
  std::vector<Run> runs;
  for (const Tally* tally : tallies) runs.insert(runs.end(), tally->runs, tally->runs + tally->count);
  std::ranges::sort(runs, {}, &Run::ended);
  for (const Run& run : runs) samples.add(run.started, run.ended);
  return samples;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  const Options options(argc, argv);
  if (options.command() == "run") {
    run_on_schedule(options).print();
  } else if (options.command() == "sustained") {
    run_as_many_as_possible(options).print();
  } else {
    give_up("unknown command " + options.command());
  }
  return 0;
}

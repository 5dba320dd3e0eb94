// One sandbox from the server's side: its init, its limits, its end. Who made it differs: a launcher of its
// own (LaunchedProcess) or the stage of a template (stage.h).
//
// Tasks listen to init and to the maker for as long as they live, another watches the limits; all of them
// share `Process` with the Sandbox that the caller holds, so a sandbox that is dropped is still killed and
// reaped. Everything happens on the loop and nothing blocks, but for a Process that goes together with its
// loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/event.h"
#include "sandbox/control.h"
#include "sandbox/limit_backend.h"
#include "sandbox/sandbox.h"
#include "sandbox/spawn.h"
#include "sandbox/uid_pool.h"

namespace prims::sandbox {

/// What a Process holds until the last process of its sandbox is gone.
struct Holdings {
  std::optional<UidLease> lease;
  std::unique_ptr<LimitGroup> limits;
  Limits requested;
  bool add_to_limits = false;  ///< the first process does not enter them by itself
};

class Process : public std::enable_shared_from_this<Process> {
 public:
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  /// Starts the Tasks that listen. Once.
  void listen(const io::Executor& executor);

  /// Waits until init is locked down and ready. An Error names the launcher's step that failed.
  static io::Task<Result<>> prepared(std::shared_ptr<Process> self, Deadline deadline);
  static io::Task<Result<>> attach(std::shared_ptr<Process> self, std::vector<Attachment> attachments);
  Result<> watch();
  static io::Task<Result<>> start(std::shared_ptr<Process> self, StartSpec spec);
  static io::Task<bool> ended_by(std::shared_ptr<Process> self, Deadline deadline);
  static io::Task<Outcome> finish(std::shared_ptr<Process> self);
  void signal(int number);
  void kill(Outcome reason);
  Usage usage() const { return usage_; }
  /// Nothing of it runs any more, but for an init that is about to end.
  bool is_over() const { return finished_.is_set(); }
  UniqueFd take_broker_socket() { return std::move(broker_); }

 protected:
  using Notice = launcher::wire::Notice;

  Process(UniqueFd init, Holdings holdings) : init_(std::move(init)), holdings_(std::move(holdings)) {}

  /// Ends when init and whoever made the sandbox for it alone are gone and reaped.
  virtual io::Task<> maker_ended(std::shared_ptr<Process> self) = 0;
  /// The answer comes as on_attach_answer().
  virtual Result<> send_attach(const std::vector<Attachment>& attachments) = 0;
  /// Before there is an init.
  virtual void kill_maker() = 0;
  virtual void on_init(Received received);

  void on_created(Received received, pid_t pid);
  void on_attach_answer(const Notice& notice);
  void on_usage(const Notice& notice) { usage_notice_ = notice; }
  void on_failed(const Notice& notice);
  void kill_processes();

  bool ready() const { return ready_; }
  const std::string& failure() const { return failure_; }
  bool ended() const { return finished_.is_set() || outcome_ || exit_; }
  bool adds_to_limits() const { return holdings_.add_to_limits; }
  const std::optional<UidLease>& lease() const { return holdings_.lease; }
  LimitGroup& limits() { return *holdings_.limits; }
  int init_pidfd() const { return init_pidfd_.get(); }
  Control& init() { return init_; }
  void set_started() { started_ = true; }

 private:
  static io::Task<> listen_to_init(std::shared_ptr<Process> self);
  static io::Task<> see_to_the_end(std::shared_ptr<Process> self);
  static io::Task<> see_to_the_program(std::shared_ptr<Process> self);
  static io::Task<> settle(std::shared_ptr<Process> self);
  static io::Task<> watch_limits(std::shared_ptr<Process> self);

  void take_usage();
  void let_go();
  Outcome natural_outcome();
  Outcome explain(Outcome seen);
  Result<> attach_error(const Notice& notice, const std::vector<Attachment>& attachments) const;

  io::Executor executor_;
  Control init_;
  UniqueFd init_pidfd_;
  Holdings holdings_;
  UniqueFd broker_;
  std::vector<Attachment> writable_;  // one for each target, to be watched

  std::optional<Notice> attach_answer_;
  std::optional<Notice> exit_;          // how the program ended, from init, the only one left by then
  std::optional<Notice> usage_notice_;  // of all processes, from the launcher
  std::optional<Outcome> outcome_;
  std::string failure_;  // of the preparation, for a person
  Usage usage_;
  bool ready_ = false;
  bool started_ = false;
  bool watched_ = false;
  bool settling_ = false;

  io::Event prepared_;
  io::Event answered_;
  io::Event program_ended_;
  io::Event init_closed_;
  io::Event finished_;
};

/// The sandbox of one launcher.
class LaunchedProcess : public Process {
 public:
  LaunchedProcess(Launched launched, Holdings holdings);
  LaunchedProcess(const LaunchedProcess&) = delete;
  LaunchedProcess& operator=(const LaunchedProcess&) = delete;
  ~LaunchedProcess() override;

 protected:
  io::Task<> maker_ended(std::shared_ptr<Process> self) override;
  Result<> send_attach(const std::vector<Attachment>& attachments) override;
  void kill_maker() override;
  virtual void on_answer(const Notice& notice) { on_attach_answer(notice); }

  Control& launcher() { return launcher_; }

 private:
  void on_launcher(Received received);

  Control launcher_;
  UniqueFd launcher_pidfd_;
  bool reaped_ = false;
};

/// So that a program may open /dev/stdout and its like: that asks for rights on the pipe itself, which is the
/// server's.
void give_pipe(const UniqueFd& fd, uid_t uid);

/// The Sandbox that callers hold.
std::unique_ptr<Sandbox> make_sandbox(std::shared_ptr<Process> process);

}  // namespace prims::sandbox

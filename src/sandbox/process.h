// One launcher with its sandbox, from the server's side.
//
// Two Tasks listen to launcher and init for as long as they live, a third watches the limits; all of them
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
  Process(Launched launched, Holdings holdings);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  /// Starts the Tasks that listen. Once.
  void listen(const io::Executor& executor);

  /// Waits until init is locked down and ready. An Error names the launcher's step that failed.
  static io::Task<Result<>> prepared(std::shared_ptr<Process> self, Deadline deadline);
  static io::Task<Result<>> attach(std::shared_ptr<Process> self, std::vector<Attachment> attachments);
  static io::Task<Result<>> start(std::shared_ptr<Process> self, StartSpec spec);
  static io::Task<bool> ended_by(std::shared_ptr<Process> self, Deadline deadline);
  static io::Task<Outcome> finish(std::shared_ptr<Process> self);
  void signal(int number);
  void kill(Outcome reason);
  Usage usage() const { return usage_; }
  UniqueFd take_broker_socket() { return std::move(broker_); }

 private:
  using Notice = launcher::wire::Notice;
  struct Failed {
    Outcome outcome;
    std::string message;
  };

  static io::Task<> listen_to_launcher(std::shared_ptr<Process> self);
  static io::Task<> listen_to_init(std::shared_ptr<Process> self);
  static io::Task<> watch_limits(std::shared_ptr<Process> self);

  void on_launcher(Received received);
  void on_init(Received received);
  void on_created(Received received);
  void on_failed(const Notice& notice);
  void kill_processes();
  void settle();
  Outcome natural_outcome();
  Outcome explain(Outcome seen);
  Result<> attach_error(const Notice& notice, const std::vector<Attachment>& attachments) const;

  Control launcher_;
  Control init_;
  UniqueFd launcher_pidfd_;
  UniqueFd init_pidfd_;
  Holdings holdings_;
  UniqueFd broker_;

  std::optional<Notice> attach_answer_;
  std::optional<Notice> exit_;          // how the program ended, from init
  std::optional<Notice> usage_notice_;  // of all processes, from the launcher
  std::optional<Outcome> outcome_;
  std::string failure_;  // of the preparation, for a person
  Usage usage_;
  bool ready_ = false;
  bool started_ = false;
  bool reaped_ = false;

  io::Event prepared_;
  io::Event answered_;
  io::Event program_ended_;
  io::Event init_closed_;
  io::Event finished_;
};

/// The Sandbox that callers hold.
std::unique_ptr<Sandbox> make_sandbox(std::shared_ptr<Process> process);

}  // namespace prims::sandbox

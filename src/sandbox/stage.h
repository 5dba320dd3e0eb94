// A template: its stage (launcher/stage.h), its program, and the sandboxes of its forks, from the server's
// side.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "io/event.h"
#include "sandbox/process.h"

namespace prims::sandbox {

/// What the sandboxes of a stage are made with.
struct StagePlan {
  std::uint32_t slots = 0;
  std::vector<UidLease> leases;  ///< as root one for each slot
  Limits limits;                 ///< of each sandbox
  std::function<Result<std::unique_ptr<LimitGroup>>()> make_group;
};

class Member;

/// The sandbox of the template program itself, which makes others. Its first process, the stage, takes the
/// place of init.
class Stage : public LaunchedProcess {
 public:
  Stage(Launched launched, Holdings holdings, UniqueFd fork_socket, StagePlan plan);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() override = default;

  /// Starts the Task that listens to the template program. Once, beside listen().
  void listen_to_program(const io::Executor& executor);

  /// Waits until the program asks for its first fork.
  static io::Task<Result<>> warmed_up(std::shared_ptr<Stage> self, Deadline deadline);
  static io::Task<Result<std::unique_ptr<Sandbox>>> fork(std::shared_ptr<Stage> self, ForkSpec spec);

  bool alive() const { return waiting_ && !ended() && !broken_; }

  /// Nobody asks for forks any more: ends when the last sandbox has.
  void retire();

 private:
  friend class Member;
  /// Somebody who waits for an answer of the template program.
  struct Answer {
    io::Event told;
    std::optional<Notice> notice;
  };

  static io::Task<> listen_to_forks(std::shared_ptr<Stage> self);
  static io::Task<Result<std::size_t>> free_slot(std::shared_ptr<Stage> self);
  static io::Task<Result<std::shared_ptr<Member>>> make_member(std::shared_ptr<Stage> self);
  static io::Task<Result<>> join(std::shared_ptr<Stage> self, std::shared_ptr<Member> member, ForkSpec spec);

  io::Task<> maker_ended(std::shared_ptr<Process> self) override;
  void on_init(Received received) override;
  void on_answer(const Notice& notice) override;
  void on_program(const Notice& notice);
  Result<> attach_for(std::shared_ptr<Member> member, const std::vector<Attachment>& attachments);
  void release(std::size_t slot);
  void break_down(std::string_view reason);
  Member* member_in(std::int32_t slot) const;
  bool has_leaving() const;

  Control program_;
  StagePlan plan_;
  std::vector<std::weak_ptr<Member>> members_;     // by slot; their Tasks keep them
  std::vector<bool> taken_;                        // by slot, until everything in it has ended
  std::deque<std::shared_ptr<Member>> attaching_;  // answers come in this order
  std::deque<std::shared_ptr<Answer>> joining_;    // shared with the one who waits
  io::Event warm_;
  io::Event released_;    ///< a slot
  bool waiting_ = false;  ///< the program has asked for its first fork
  bool retired_ = false;
  bool broken_ = false;
};

/// The Template that callers hold.
std::unique_ptr<Template> make_template(std::shared_ptr<Stage> stage);

}  // namespace prims::sandbox

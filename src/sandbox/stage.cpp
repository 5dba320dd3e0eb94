#include "sandbox/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "base/log.h"
#include "io/loop.h"
#include "sandbox/encode.h"

namespace prims::sandbox {
namespace {

namespace wire = launcher::wire;

constexpr Milliseconds kAnswerTime{10'000};

/// The pid that a process has here, of which the stage knows only its own number.
pid_t pid_of(int pidfd) {
  std::ifstream info(fmt::format("/proc/self/fdinfo/{}", pidfd));
  for (std::string key; info >> key;) {
    pid_t pid = 0;
    if (key == "Pid:" && info >> pid) return pid;
  }
  return -1;
}

}  // namespace

/// One sandbox that a stage has made. It keeps the stage for as long as anything in it lives.
class Member final : public Process {
 public:
  Member(std::shared_ptr<Stage> stage, std::size_t slot, UniqueFd init, Holdings holdings)
      : Process(std::move(init), std::move(holdings)), stage_(std::move(stage)), slot_(slot) {}
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Without finish() behind it only when the loop is gone: its stage follows and takes the rest along.
  ~Member() override {
    if (!gone_.is_set()) kill_processes();
  }

  std::size_t slot() const { return slot_; }
  bool exists() const { return init_pidfd() >= 0; }
  int pidfd() const { return init_pidfd(); }
  std::span<const int> entries() { return limits().entries(); }

  void created(Received received) {
    const pid_t pid = pid_of(received.descriptor.get());
    on_created(std::move(received), pid);
    created_.set();
  }
  /// Init is ready and known here: the two are told by different sides, in any order.
  static io::Task<Result<>> complete(std::shared_ptr<Member> self) {
    const Deadline deadline = Deadline::after(kAnswerTime);
    auto ready = co_await Process::prepared(self, deadline);
    PRIMS_CO_RETURN_ON_ERROR(std::move(ready));
    co_return co_await self->created_.wait(deadline);
  }
  void gone(const Notice& notice) {
    on_usage(notice);
    gone_.set();
  }
  void maker_failed(const Notice& notice) {
    on_failed(notice);
    if (!exists()) gone_.set();
  }
  void stage_gone() { gone_.set(); }
  void attach_answer(const Notice& notice) { on_attach_answer(notice); }

  /// Tells init which process has joined, and waits until it sees to it.
  static io::Task<Result<>> adopt(std::shared_ptr<Member> self, std::int32_t pid) {
    const auto request = encode_request(wire::RequestKind::adopt, static_cast<std::uint32_t>(pid));
    PRIMS_CO_RETURN_ON_ERROR(self->init().send(request));
    auto adopted = co_await self->adopted_.wait(Deadline::after(kAnswerTime));
    PRIMS_CO_RETURN_ON_ERROR(std::move(adopted));
    if (self->ended()) co_return fail(Kind::unavailable, "the fork ended at once");
    self->set_started();
    co_return Result<>();
  }

 protected:
  io::Task<> maker_ended(std::shared_ptr<Process> self) override {
    auto gone = co_await gone_.wait();
    if (!gone) log::debug("sandbox: {}", gone.error().message);
    stage_->release(slot_);
  }
  Result<> send_attach(const std::vector<Attachment>& attachments) override {
    return stage_->attach_for(std::static_pointer_cast<Member>(shared_from_this()), attachments);
  }
  void on_init(Received received) override {
    if (received.notice.kind == wire::NoticeKind::joined) return adopted_.set();
    Process::on_init(std::move(received));
    if (ended()) adopted_.set();
  }
  void kill_maker() override {}  // the stage goes on; as soon as there is an init, it is killed

 private:
  std::shared_ptr<Stage> stage_;
  std::size_t slot_;
  io::Event created_;
  io::Event adopted_;
  io::Event gone_;
};

Stage::Stage(Launched launched, Holdings holdings, UniqueFd fork_socket, StagePlan plan)
    : LaunchedProcess(std::move(launched), std::move(holdings)),
      program_(std::move(fork_socket)),
      plan_(std::move(plan)),
      members_(plan_.slots),
      taken_(plan_.slots) {}

// --- what the stage and its program say
// -------------------------------------------------------------------------------------

void Stage::listen_to_program(const io::Executor& executor) {
  io::spawn(executor, listen_to_forks(std::static_pointer_cast<Stage>(shared_from_this())), "a template");
}

/// Ends with the program, which goes with its stage.
io::Task<> Stage::listen_to_forks(std::shared_ptr<Stage> self) {
  for (;;) {
    auto received = co_await self->program_.receive();
    if (!received) break;
    self->on_program(received->notice);
  }
  self->break_down("the template program has ended");
}

void Stage::on_program(const Notice& notice) {
  if (notice.kind == wire::NoticeKind::ready) {
    waiting_ = true;
    return warm_.set();
  }
  const bool answer = notice.kind == wire::NoticeKind::joined || notice.kind == wire::NoticeKind::failed;
  if (!answer || joining_.empty()) return break_down("the template program sent an unexpected notice");
  joining_.front()->notice = notice;
  joining_.front()->told.set();
  joining_.pop_front();
}

/// It makes no sandboxes any more; those that live need it only to be reaped.
void Stage::break_down(std::string_view reason) {
  if (!std::exchange(broken_, true) && waiting_ && !retired_) log::warning("sandbox: {}", reason);
  warm_.set();
  for (const auto& answer : std::exchange(joining_, {})) answer->told.set();
  retire();
}

/// Whatever it has made is gone, too: it lived in its pid namespace.
io::Task<> Stage::maker_ended(std::shared_ptr<Process> self) {
  co_await LaunchedProcess::maker_ended(self);
  for (const auto& weak : members_) {
    if (const auto member = weak.lock()) member->stage_gone();
  }
}

Member* Stage::member_in(std::int32_t slot) const {
  const auto number = static_cast<std::size_t>(slot);
  return slot >= 0 && number < members_.size() ? members_[number].lock().get() : nullptr;
}

void Stage::on_init(Received received) {
  const Notice notice = received.notice;
  Member* member = ready() ? member_in(notice.value) : nullptr;
  switch (notice.kind) {
    case wire::NoticeKind::created:
      if (member != nullptr) member->created(std::move(received));
      return;
    case wire::NoticeKind::ended:
      if (member != nullptr) member->gone(notice);
      return;
    case wire::NoticeKind::failed:
      if (member == nullptr) return Process::on_init(std::move(received));
      return member->maker_failed(notice);
    default:
      return Process::on_init(std::move(received));
  }
}

void Stage::on_answer(const Notice& notice) {
  if (attaching_.empty()) return on_attach_answer(notice);
  attaching_.front()->attach_answer(notice);
  attaching_.pop_front();
}

Result<> Stage::attach_for(std::shared_ptr<Member> member, const std::vector<Attachment>& attachments) {
  const auto slot = static_cast<std::uint32_t>(member->slot());
  PRIMS_ASSIGN_OR_RETURN(const std::string message, encode_attach(attachments, slot));
  const int pidfd = member->pidfd();
  PRIMS_RETURN_ON_ERROR(launcher().send(message, std::span(&pidfd, 1)));
  attaching_.push_back(std::move(member));
  return {};
}

// --- forks
// -------------------------------------------------------------------------------------

io::Task<Result<>> Stage::warmed_up(std::shared_ptr<Stage> self, Deadline deadline) {
  auto warm = co_await self->warm_.wait(deadline);
  if (self->waiting_ && !self->broken_) co_return Result<>();
  self->break_down("no template");
  if (!self->failure().empty())
    co_return fail(Kind::unavailable, fmt::format("template: {}", self->failure()));
  PRIMS_CO_RETURN_ON_ERROR(std::move(warm));
  co_return fail(Kind::unavailable, "the template program ended before it asked for a fork");
}

/// A sandbox whose program has ended, and which is about to follow.
bool Stage::has_leaving() const {
  return std::ranges::any_of(members_, [](const std::weak_ptr<Member>& weak) {
    const auto member = weak.lock();
    return member && member->is_over();
  });
}

io::Task<Result<std::size_t>> Stage::free_slot(std::shared_ptr<Stage> self) {
  const Deadline deadline = Deadline::after(kAnswerTime);
  for (;;) {
    const auto slot = static_cast<std::size_t>(std::ranges::find(self->taken_, false) - self->taken_.begin());
    if (slot < self->taken_.size()) co_return slot;
    if (!self->has_leaving() || deadline.passed()) {
      co_return fail(Kind::exhausted, fmt::format("all {} sandboxes of a template are in use", slot));
    }
    self->released_.reset();
    auto released = co_await self->released_.wait(deadline);
    if (!released) log::debug("sandbox: wait for room: {}", released.error().message);
  }
}

io::Task<Result<std::shared_ptr<Member>>> Stage::make_member(std::shared_ptr<Stage> self) {
  auto found = co_await free_slot(self);
  PRIMS_CO_ASSIGN_OR_RETURN(const std::size_t slot, std::move(found));
  Holdings holdings;
  holdings.requested = self->plan_.limits;
  PRIMS_CO_ASSIGN_OR_RETURN(holdings.limits, self->plan_.make_group());
  holdings.add_to_limits = holdings.limits->entries().empty();
  PRIMS_CO_ASSIGN_OR_RETURN(SocketPair sockets, make_sockets());
  std::vector<int> descriptors{sockets.theirs.get()};
  std::ranges::copy(holdings.limits->entries(), std::back_inserter(descriptors));
  const std::string request = encode_request(wire::RequestKind::make, static_cast<std::uint32_t>(slot));
  PRIMS_CO_RETURN_ON_ERROR(self->init().send(request, descriptors));
  sockets.theirs.reset();  // so that its end is seen here

  auto member = std::make_shared<Member>(self, slot, std::move(sockets.ours), std::move(holdings));
  self->taken_[slot] = true;
  self->members_[slot] = member;
  const io::Executor executor = co_await io::this_executor;
  member->listen(executor);
  auto complete = co_await Member::complete(member);
  PRIMS_CO_RETURN_ON_ERROR(std::move(complete));
  co_return member;
}

io::Task<Result<>> Stage::join(std::shared_ptr<Stage> self, std::shared_ptr<Member> member, ForkSpec spec) {
  const auto entries = member->entries();
  std::vector<int> descriptors{member->pidfd()};
  std::ranges::copy(entries, std::back_inserter(descriptors));
  for (const UniqueFd* fd : {&spec.standard_input, &spec.standard_output, &spec.standard_error}) {
    if (!*fd) continue;
    if (!self->plan_.leases.empty()) give_pipe(*fd, self->plan_.leases[member->slot()].uid());
    descriptors.push_back(fd->get());
  }
  for (const UniqueFd& fd : spec.extra) descriptors.push_back(fd.get());
  PRIMS_CO_RETURN_ON_ERROR(self->program_.send(encode_join(spec, entries.size()), descriptors));

  auto answer = std::make_shared<Answer>();
  self->joining_.push_back(answer);
  auto told = co_await answer->told.wait(Deadline::after(kAnswerTime));
  if (!answer->notice) self->break_down("the template program does not answer");
  PRIMS_CO_RETURN_ON_ERROR(std::move(told));
  if (!answer->notice) co_return fail(Kind::unavailable, "the template has ended");
  if (answer->notice->kind == wire::NoticeKind::failed) {
    co_return fail(Kind::unavailable, fmt::format("fork into a sandbox: {}: {}", answer->notice->step,
                                                  errno_text(answer->notice->error)));
  }
  co_return co_await Member::adopt(member, answer->notice->value);
}

io::Task<Result<std::unique_ptr<Sandbox>>> Stage::fork(std::shared_ptr<Stage> self, ForkSpec spec) {
  if (!self->alive()) co_return fail(Kind::unavailable, "the template has ended");
  auto made = co_await make_member(self);
  PRIMS_CO_ASSIGN_OR_RETURN(std::shared_ptr<Member> member, std::move(made));
  std::unique_ptr<Sandbox> sandbox = make_sandbox(member);  // kills it when it goes
  if (!spec.attachments.empty()) {
    auto attached = co_await Process::attach(member, std::move(spec.attachments));
    PRIMS_CO_RETURN_ON_ERROR(std::move(attached));
  }
  auto joined = co_await join(self, std::move(member), std::move(spec));
  PRIMS_CO_RETURN_ON_ERROR(std::move(joined));
  co_return sandbox;
}

// --- the end
// -------------------------------------------------------------------------------------

void Stage::release(std::size_t slot) {
  taken_[slot] = false;
  members_[slot].reset();
  released_.set();
  if (retired_) retire();
}

void Stage::retire() {
  retired_ = true;
  if (std::ranges::find(taken_, true) == taken_.end()) kill(Cancelled{});
}

namespace {

class TemplateHandle final : public Template {
 public:
  explicit TemplateHandle(std::shared_ptr<Stage> stage) : stage_(std::move(stage)) {}
  TemplateHandle(const TemplateHandle&) = delete;
  TemplateHandle& operator=(const TemplateHandle&) = delete;
  ~TemplateHandle() override { stage_->retire(); }

  io::Task<Result<std::unique_ptr<Sandbox>>> fork(ForkSpec spec) override {
    return Stage::fork(stage_, std::move(spec));
  }
  bool alive() const override { return stage_->alive(); }

 private:
  std::shared_ptr<Stage> stage_;  // shared with the sandboxes of its forks
};

}  // namespace

std::unique_ptr<Template> make_template(std::shared_ptr<Stage> stage) {
  return std::make_unique<TemplateHandle>(std::move(stage));
}

}  // namespace prims::sandbox

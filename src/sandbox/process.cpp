#include "sandbox/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "base/log.h"
#include "io/loop.h"
#include "io/wait.h"
#include "launcher/kernel.h"
#include "sandbox/encode.h"

namespace prims::sandbox {
namespace {

namespace wire = launcher::wire;

constexpr Milliseconds kWatchInterval{50};
constexpr Milliseconds kAnswerTime{10'000};
/// A million files take about a second.
constexpr Milliseconds kLastWalkTime{5000};

bool ended_well(const Outcome& outcome) {
  const auto* exited = std::get_if<Exited>(&outcome);
  return exited != nullptr && exited->code == 0;
}

Milliseconds cpu_time(const wire::CpuUsage& usage) {
  return Milliseconds((usage.user_us + usage.system_us) / 1000);
}

std::string describe(const wire::Notice& notice) {
  const std::string reason = notice.error == 0 ? "" : fmt::format(": {}", errno_text(notice.error));
  return fmt::format("{}{}", notice.step, reason);
}

}  // namespace

void give_pipe(const UniqueFd& fd, uid_t uid) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  if (::fchown(fd.get(), uid, uid) != 0) log::debug("sandbox: chown of a pipe: {}", errno_text(errno));
}

void Process::listen(const io::Executor& executor) {
  executor_ = executor;
  io::spawn(executor, see_to_the_end(shared_from_this()), "end of a sandbox");
  io::spawn(executor, see_to_the_program(shared_from_this()), "end of a program");
  io::spawn(executor, listen_to_init(shared_from_this()), "init of a sandbox");
}

// --- what init says
// -------------------------------------------------------------------------------------

io::Task<> Process::listen_to_init(std::shared_ptr<Process> self) {
  for (;;) {
    auto received = co_await self->init_.receive();
    if (!received) break;
    self->on_init(*std::move(received));
  }
  self->init_closed_.set();
  self->program_ended_.set();
}

io::Task<> Process::watch_limits(std::shared_ptr<Process> self) {
  while (!self->finished_.is_set()) {
    auto finished = co_await self->finished_.wait(Deadline::after(kWatchInterval));
    if (finished || finished.error().kind != Kind::timed_out) co_return;
    if (self->outcome_) continue;
    if (auto breached = self->holdings_.limits->breached()) self->kill(*std::move(breached));
  }
}

void Process::on_created(Received received, pid_t pid) {
  init_pidfd_ = std::move(received.descriptor);
  if (outcome_) return kill_processes();
  if (!holdings_.add_to_limits) return;
  const Result<> added = holdings_.limits->add(pid);
  if (added) return;
  failure_ = fmt::format("enter limits: {}", added.error().message);
  kill(SetupFailed{"enter limits", 0});
}

void Process::on_attach_answer(const Notice& notice) {
  attach_answer_ = notice;
  answered_.set();
}

void Process::on_init(Received received) {
  switch (received.notice.kind) {
    case wire::NoticeKind::broker:
      broker_ = std::move(received.descriptor);
      return;
    case wire::NoticeKind::ready:
      ready_ = true;
      return prepared_.set();
    case wire::NoticeKind::exited:
      exit_ = received.notice;
      holdings_.limits->saw_threads(exit_->threads);
      return program_ended_.set();
    case wire::NoticeKind::failed:
      return on_failed(received.notice);
    default:
      log::error("sandbox: init sent an unexpected notice");
      return kill(SetupFailed{"init notice", EPROTO});
  }
}

void Process::on_failed(const Notice& notice) {
  if (failure_.empty()) failure_ = describe(notice);
  kill(SetupFailed{notice.step, notice.error});
}

// --- the end
// --------------------------------------------------------------------------------------------------------

void Process::kill(Outcome reason) {
  if (finished_.is_set()) return;
  if (!outcome_ && !exit_) outcome_ = std::move(reason);
  kill_processes();
}

/// Init takes everything in its pid namespace with it, and its maker hears of it.
void Process::kill_processes() {
  if (!init_pidfd_) return kill_maker();
  launcher::kernel::pidfd_send_signal(init_pidfd_.get(), SIGKILL);
}

/// The word of init is enough: it reports when nobody else is left. That it goes itself, with its namespaces,
/// is nothing anybody waits for.
io::Task<> Process::see_to_the_program(std::shared_ptr<Process> self) {
  auto ended = co_await self->program_ended_.wait();
  if (ended && self->exit_) co_await settle(self);
}

io::Task<> Process::see_to_the_end(std::shared_ptr<Process> self) {
  co_await self->maker_ended(self);
  if (self->init_pidfd_) {
    self->kill_processes();  // a maker that was killed at the wrong moment does not take init along
    auto gone = co_await io::wait_readable(self->init_pidfd_.get(), Deadline::never());
    if (!gone) log::error("sandbox: {}", gone.error().message);
  }
  auto closed = co_await self->init_closed_.wait();
  if (!closed) co_return;
  co_await settle(self);
  self->let_go();
}

/// Nobody writes any more. The outcome and the usage are final after this.
io::Task<> Process::settle(std::shared_ptr<Process> self) {
  if (std::exchange(self->settling_, true)) {
    [[maybe_unused]] auto finished = co_await self->finished_.wait();
    co_return;
  }
  const bool killed = self->outcome_.has_value();
  const UniqueFd measured = killed ? UniqueFd() : self->holdings_.limits->close_directories();
  if (measured) {
    auto done = co_await io::wait_readable(measured.get(), Deadline::after(kLastWalkTime));
    if (!done) log::warning("sandbox: size of the workspace at the end: {}", done.error().message);
  }
  if (!self->outcome_) self->outcome_ = self->explain(self->natural_outcome());
  self->take_usage();
  self->prepared_.set();
  self->answered_.set();
  self->finished_.set();
}

void Process::take_usage() {
  usage_ = holdings_.limits->usage();
  for (const auto* notice : {&exit_, &usage_notice_}) {
    if (!*notice) continue;
    usage_.cpu = std::max(usage_.cpu, cpu_time((*notice)->usage));
    usage_.peak_memory = std::max(usage_.peak_memory, kib((*notice)->usage.peak_kib));
  }
}

/// Only when init is gone, too.
void Process::let_go() {
  holdings_.limits.reset();
  holdings_.lease.reset();
}

Outcome Process::natural_outcome() {
  if (!exit_) return started_ ? Outcome(Signalled{SIGKILL}) : Outcome(SetupFailed{"init", 0});
  const int status = exit_->value;
  if (WIFSIGNALED(status)) return Signalled{WTERMSIG(status)};
  return Exited{WEXITSTATUS(status)};
}

/// A program that ended well had no trouble with a limit, but what fills the disk stays behind all the same.
/// Otherwise the limits are asked first.
Outcome Process::explain(Outcome seen) {
  auto breached = holdings_.limits->breached();
  if (breached && (!ended_well(seen) || std::holds_alternative<DiskLimit>(*breached))) return *breached;
  if (ended_well(seen)) return seen;
  const auto* signalled = std::get_if<Signalled>(&seen);
  if (signalled != nullptr && signalled->signal == SIGXCPU && holdings_.requested.cpu_time.count() > 0) {
    const Milliseconds used = exit_ ? cpu_time(exit_->usage) : Milliseconds(0);
    return CpuTimeExceeded{holdings_.requested.cpu_time, used};
  }
  if (auto refused = holdings_.limits->process_limit_hit()) {
    if (const auto* exited = std::get_if<Exited>(&seen)) refused->exit_code = exited->code;
    return *refused;
  }
  return seen;
}

// --- what callers ask for
// -------------------------------------------------------------------------------------------

io::Task<Result<>> Process::prepared(std::shared_ptr<Process> self, Deadline deadline) {
  auto waited = co_await self->prepared_.wait(deadline);
  if (self->ready_ && !self->outcome_) co_return Result<>();
  if (!waited) {
    const Outcome reason =
        waited.error().kind == Kind::cancelled ? Outcome(Cancelled{}) : SetupFailed{"no answer", ETIMEDOUT};
    self->kill(reason);
    co_return std::unexpected(waited.error());
  }
  const std::string step = self->failure_.empty() ? "init ended" : self->failure_;
  co_return fail(Kind::unavailable, fmt::format("the sandbox could not be made: {}", step));
}

io::Task<Result<>> Process::attach(std::shared_ptr<Process> self, std::vector<Attachment> attachments) {
  self->answered_.reset();
  self->attach_answer_.reset();
  PRIMS_CO_RETURN_ON_ERROR(self->send_attach(attachments));
  auto answered = co_await self->answered_.wait(Deadline::after(kAnswerTime));
  if (!answered) self->kill(SetupFailed{"attach", ETIMEDOUT});
  PRIMS_CO_RETURN_ON_ERROR(std::move(answered));
  if (!self->attach_answer_)
    co_return fail(Kind::unavailable, "the sandbox ended before its directories were attached");
  PRIMS_CO_RETURN_ON_ERROR(self->attach_error(*self->attach_answer_, attachments));
  for (Attachment& attachment : attachments) {
    std::erase_if(self->writable_,
                  [&](const Attachment& other) { return other.target == attachment.target; });
    if (attachment.access == Access::read_write) self->writable_.push_back(std::move(attachment));
  }
  co_return Result<>();
}

Result<> Process::watch() {
  if (finished_.is_set() || std::exchange(watched_, true)) return {};
  for (const Attachment& attachment : writable_) {
    PRIMS_RETURN_ON_ERROR(holdings_.limits->watch_directory(
        {attachment.source, holdings_.requested.workspace, attachment.made}));
  }
  io::spawn(executor_, watch_limits(shared_from_this()), "limits of a sandbox");
  return {};
}

Result<> Process::attach_error(const Notice& notice, const std::vector<Attachment>& attachments) const {
  if (notice.kind == wire::NoticeKind::attached) return {};
  const auto number = static_cast<std::size_t>(notice.value);
  if (number >= attachments.size())
    return fail(Kind::unavailable, fmt::format("attach: {}", describe(notice)));
  const Attachment& attachment = attachments[number];
  struct statfs file_system{};
  ::statfs(attachment.source.c_str(), &file_system);
  return fail(Kind::unavailable,
              fmt::format("attach {} at {} (file system type {:#x}): {}", attachment.source,
                          attachment.target, file_system.f_type, describe(notice)));
}

io::Task<Result<>> Process::start(std::shared_ptr<Process> self, StartSpec spec) {
  PRIMS_CO_ASSIGN_OR_RETURN(const std::string message, encode_start(spec));
  if (self->started_ || self->outcome_)
    co_return fail(Kind::unavailable, "the sandbox has started or ended already");
  std::vector<int> descriptors;
  for (const UniqueFd* fd : {&spec.standard_input, &spec.standard_output, &spec.standard_error}) {
    if (!*fd) continue;
    if (self->holdings_.lease) give_pipe(*fd, self->holdings_.lease->uid());
    descriptors.push_back(fd->get());
  }
  for (const UniqueFd& fd : spec.extra) descriptors.push_back(fd.get());
  PRIMS_CO_RETURN_ON_ERROR(self->watch());
  self->started_ = true;
  co_return self->init_.send(message, descriptors);
}

io::Task<bool> Process::ended_by(std::shared_ptr<Process> self, Deadline deadline) {
  auto ended = co_await self->program_ended_.wait(deadline);
  co_return ended.has_value() || self->program_ended_.is_set();
}

io::Task<Outcome> Process::finish(std::shared_ptr<Process> self) {
  if (!self->started_) self->kill(Cancelled{});
  while (!self->finished_.is_set()) {
    auto finished = co_await self->finished_.wait();
    if (!finished) self->kill(Cancelled{});
  }
  co_return *self->outcome_;
}

void Process::signal(int number) {
  if (!started_ || exit_) return;
  const auto request = encode_request(wire::RequestKind::signal, static_cast<std::uint32_t>(number));
  if (const auto sent = init_.send(request); !sent) log::debug("sandbox: signal: {}", sent.error().message);
}

// --- one launcher for one sandbox
// -------------------------------------------------------------------------------------------

LaunchedProcess::LaunchedProcess(Launched launched, Holdings holdings)
    : Process(std::move(launched.init), std::move(holdings)),
      launcher_(std::move(launched.control)),
      launcher_pidfd_(std::move(launched.pidfd)) {}

/// Without finish() behind it only when the loop is gone: then what is left is killed and waited for here, so
/// that neither a zombie nor a used uid remains.
LaunchedProcess::~LaunchedProcess() {
  if (reaped_) return;
  kill_processes();
  kill_maker();
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(launcher_pidfd_.get()), &info, WEXITED) != 0 && errno == EINTR) {
  }
  pollfd init{init_pidfd(), POLLIN, 0};
  if (init_pidfd() >= 0) ::poll(&init, 1, static_cast<int>(kAnswerTime.count()));
}

void LaunchedProcess::kill_maker() {
  launcher::kernel::pidfd_send_signal(launcher_pidfd_.get(), SIGKILL);
}

/// Init with its pid namespace goes before the launcher, or is killed by the kernel because the launcher
/// went. The pointer keeps this object.
io::Task<> LaunchedProcess::maker_ended(std::shared_ptr<Process> self) {
  for (;;) {
    auto received = co_await launcher_.receive();
    if (!received) break;
    on_launcher(*std::move(received));
  }
  auto ended = co_await io::wait_process(launcher_pidfd_.get(), Deadline::never());
  if (!ended) log::error("sandbox: {}", ended.error().message);
  reaped_ = ended.has_value();
}

Result<> LaunchedProcess::send_attach(const std::vector<Attachment>& attachments) {
  PRIMS_ASSIGN_OR_RETURN(const std::string message, encode_attach(attachments));
  return launcher_.send(message);
}

void LaunchedProcess::on_launcher(Received received) {
  const Notice notice = received.notice;
  switch (notice.kind) {
    case wire::NoticeKind::created: {
      on_created(std::move(received), notice.value);
      if (!adds_to_limits() || ended()) return;
      const Result<> sent = launcher_.send(encode_request(wire::RequestKind::proceed));
      if (!sent) kill(SetupFailed{"proceed", 0});
      return;
    }
    case wire::NoticeKind::ended:
      return on_usage(notice);
    case wire::NoticeKind::failed:
      return ready() ? on_answer(notice) : on_failed(notice);
    case wire::NoticeKind::attached:
      return on_answer(notice);
    default:
      log::error("sandbox: the launcher sent an unexpected notice");
      return kill(SetupFailed{"launcher notice", EPROTO});
  }
}

namespace {

class Handle final : public Sandbox {
 public:
  explicit Handle(std::shared_ptr<Process> process) : process_(std::move(process)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() override { process_->kill(Cancelled{}); }

  io::Task<Result<>> attach(std::vector<Attachment> attachments) override {
    return Process::attach(process_, std::move(attachments));
  }
  Result<> watch() override { return process_->watch(); }
  io::Task<Result<>> start(StartSpec spec) override { return Process::start(process_, std::move(spec)); }
  io::Task<bool> ended_by(Deadline deadline) override { return Process::ended_by(process_, deadline); }
  void signal(int number) override { process_->signal(number); }
  void kill(Outcome reason) override { process_->kill(std::move(reason)); }
  io::Task<Outcome> finish() override { return Process::finish(process_); }
  Usage usage() const override { return process_->usage(); }
  UniqueFd take_broker_socket() override { return process_->take_broker_socket(); }

 private:
  std::shared_ptr<Process> process_;  // shared with the Tasks that see it to its end
};

}  // namespace

std::unique_ptr<Sandbox> make_sandbox(std::shared_ptr<Process> process) {
  return std::make_unique<Handle>(std::move(process));
}

}  // namespace prims::sandbox

#include "python/runner.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "python/conversation.h"
#include "python/environment.h"
#include "python/refusal.h"

namespace prims::python {
namespace {

/// For the interpreter to come up; a busy machine may be slow.
constexpr Milliseconds kStartTime{30'000};
/// For the guest to tell the running line before it is killed.
constexpr Milliseconds kLineTime{50};
/// For what is left in the pipes once every process is gone.
constexpr Milliseconds kDrainTime{200};

/// Ends the sandbox as soon as nobody waits for the run.
class CancelHook {
 public:
  CancelHook(std::shared_ptr<io::Cancellation> cancellation, sandbox::Sandbox* sandbox)
      : cancellation_(std::move(cancellation)) {
    if (cancellation_) cancellation_->on_request([sandbox] { sandbox->kill(sandbox::Cancelled{}); });
  }
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;
  ~CancelHook() {
    if (cancellation_) cancellation_->on_request({});
  }

 private:
  std::shared_ptr<io::Cancellation> cancellation_;  // shared with whoever may cancel
};

Milliseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
}

bool ended_by_itself(const sandbox::Outcome& outcome) {
  return std::holds_alternative<sandbox::Exited>(outcome) ||
         std::holds_alternative<sandbox::Signalled>(outcome);
}

class SandboxRunner final : public Runner {
 public:
  SandboxRunner(sandbox::Host& host, layers::Interpreter interpreter)
      : host_(host), interpreter_(std::move(interpreter)) {}

  io::Task<Result<RunResult>> run(RunSpec spec, std::shared_ptr<io::Cancellation> cancellation) override {
    const io::Executor executor = co_await io::this_executor;
    const Clock::time_point begin = Clock::now();
    auto prepared = co_await host_.prepare(prepare_spec(interpreter_, spec.limits));
    PRIMS_CO_ASSIGN_OR_RETURN(const std::unique_ptr<sandbox::Sandbox> sandbox, std::move(prepared));
    const CancelHook hook(std::move(cancellation), sandbox.get());
    const auto conversation = std::make_shared<Conversation>(executor, options_for(spec, sandbox.get()));

    RunResult result;
    auto started = co_await start_guest(sandbox.get(), conversation, attachments(spec.workspace, spec.layer),
                                        start_spec(spec.limits.sandbox, host_.enforcement()));
    const bool handed_over = started && *started;
    if (handed_over) {
      result.timings.start = since(begin);
      Call call{std::move(spec.code), kProgramFile, kWorkspacePath, std::move(spec.arguments)};
      Input input = std::move(spec.input).value_or("");
      co_await see_through(sandbox.get(), conversation, std::move(call), std::move(input), spec.limits.wall,
                           &result);
    }
    result.outcome = co_await sandbox->finish();
    co_await Conversation::finish(conversation, Deadline::after(kDrainTime));
    const bool cancelled = std::holds_alternative<sandbox::Cancelled>(result.outcome);
    if (!started && !cancelled) co_return std::unexpected(std::move(started).error());
    collect(*sandbox, *conversation, spec.limits, result);
    if (!handed_over && ended_by_itself(result.outcome)) co_return not_started(*conversation, result);
    co_return result;
  }

 private:
  static Conversation::Options options_for(const RunSpec& spec, sandbox::Sandbox* sandbox) {
    const Bytes kept = spec.limits.kept_output;
    return {.shown = spec.limits.shown_output,
            .kept = kept,
            .on_output = spec.on_output,
            .on_overflow = [sandbox, kept] { sandbox->kill(sandbox::OutputLimit{kept}); }};
  }

  /// The interpreter up to the point where it waits for its call. False: it did not get there, and the
  /// outcome says why.
  static io::Task<Result<bool>> start_guest(sandbox::Sandbox* sandbox,
                                            std::shared_ptr<Conversation> conversation,
                                            std::vector<sandbox::Attachment> attachments,
                                            sandbox::StartSpec spec) {
    auto attached = co_await sandbox->attach(std::move(attachments));
    PRIMS_CO_RETURN_ON_ERROR(std::move(attached));
    PRIMS_CO_RETURN_ON_ERROR(conversation->connect(spec));
    auto started = co_await sandbox->start(std::move(spec));
    PRIMS_CO_RETURN_ON_ERROR(std::move(started));
    conversation->listen();
    const Deadline deadline = Deadline::after(kStartTime);
    const bool greeted = co_await Conversation::greeted(conversation, deadline);
    if (!greeted && deadline.passed()) sandbox->kill(sandbox::SetupFailed{"start of Python", ETIMEDOUT});
    co_return greeted;
  }

  /// From the moment the guest gets its call to its end, or the end of its time.
  static io::Task<> see_through(sandbox::Sandbox* sandbox, std::shared_ptr<Conversation> conversation,
                                Call call, Input input, Milliseconds wall, RunResult* result) {
    const Clock::time_point begin = Clock::now();
    const Deadline deadline{begin + wall};
    auto sent = co_await Conversation::hand_over(conversation, std::move(call), std::move(input), deadline);
    if (!sent) log::debug("python: the call could not be sent: {}", sent.error().message);
    const bool ended = co_await sandbox->ended_by(deadline);
    if (!ended && !deadline.passed()) sandbox->kill(sandbox::Cancelled{});
    if (!ended && deadline.passed()) {
      result->last_line = co_await Conversation::ask_line(conversation, sandbox, Deadline::after(kLineTime));
      sandbox->kill(sandbox::TimedOut{wall});
    }
    result->timings.run = since(begin);
  }

  void collect(const sandbox::Sandbox& sandbox, Conversation& conversation, const RunLimits& limits,
               RunResult& result) const {
    result.out = conversation.take_output();
    result.err = conversation.take_errors();
    result.usage = sandbox.usage();
    result.note = conversation.note();
    if (const auto& told = conversation.result()) {
      result.error = told->error;
      result.value = told->value;
    }
    if (auto limit = refused_by_limit(result, limits.sandbox, host_.enforcement())) {
      result.outcome = *std::move(limit);
    }
  }

  static std::unexpected<Error> not_started(const Conversation& conversation, const RunResult& result) {
    const std::string& note = conversation.note();
    const std::string said = to_utf8(last_lines(result.err.head, 5));
    return fail(Kind::unavailable,
                fmt::format("Python did not start in the sandbox: {}", note.empty() ? said : note));
  }

  sandbox::Host& host_;
  const layers::Interpreter interpreter_;
};

}  // namespace

std::unique_ptr<Runner> Runner::create(sandbox::Host& host, layers::Interpreter interpreter) {
  return std::make_unique<SandboxRunner>(host, std::move(interpreter));
}

}  // namespace prims::python

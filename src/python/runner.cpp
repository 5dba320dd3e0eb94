#include "python/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "python/conversation.h"
#include "python/environment.h"
#include "python/guest.h"
#include "python/refusal.h"
#include "python/templates.h"

namespace prims::python {
namespace {

/// For the guest to tell the running line before it is killed.
constexpr Milliseconds kLineTime{50};
/// A run that takes longer does not need all of the machine, so what is made ahead may be made beside it.
constexpr Milliseconds kShortRun{20};

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
  SandboxRunner(sandbox::Host& host, layers::Interpreter interpreter, WorkspaceSource workspaces,
                std::unique_ptr<Templates> templates)
      : host_(host),
        interpreter_(std::move(interpreter)),
        workspaces_(std::move(workspaces)),
        templates_(std::move(templates)) {}

  io::Task<Result<RunResult>> run(RunSpec spec, std::shared_ptr<io::Cancellation> cancellation) override {
    const Clock::time_point begin = Clock::now();
    const Use use(templates_.get(), spec, scales_.weigh(spec.code, spec.layer));
    auto arrived = co_await arrive(use.stock(), spec.workspace, spec.limits);
    PRIMS_CO_ASSIGN_OR_RETURN(const Arrival arrival, std::move(arrived));
    const Guest& guest = arrival.guest;
    const CancelHook hook(cancellation, guest.sandbox.get());

    RunResult result;
    result.path = arrival.path;
    result.workspace = arrival.workspace;
    auto ready = co_await get_ready(&arrival, &spec);
    const bool handed_over = ready && *ready && !(cancellation && cancellation->requested());
    if (handed_over) {
      result.timings.start = since(begin);
      Call call{std::move(spec.code), kProgramFile, kWorkspacePath, std::move(spec.arguments)};
      Input input = std::move(spec.input).value_or("");
      co_await see_through(&guest, std::move(call), std::move(input), spec.limits.wall, &use, &result);
    }
    result.outcome = co_await guest.sandbox->finish();
    co_await Conversation::finish(guest.conversation, Deadline::after(kDrainTime));
    const bool cancelled = std::holds_alternative<sandbox::Cancelled>(result.outcome);
    if (!ready && !cancelled) co_return std::unexpected(std::move(ready).error());
    collect(guest, spec.limits, result);
    if (!handed_over && ended_by_itself(result.outcome)) co_return not_started(guest, result);
    co_return result;
  }

  void warm_up(const layers::Layer& layer, const RunLimits& limits) override {
    if (!templates_) return;
    const bool has_heavy = !imports_ahead(layer.packages, Weight::heavy).modules.empty();
    if (has_heavy) templates_->served(templates_->stock_for(layer, limits, Weight::heavy), layer);
    templates_->served(templates_->stock_for(layer, limits, Weight::light), layer);
  }

  io::Task<Result<>> stop(Deadline deadline) override {
    if (!templates_) co_return Result<>();
    co_return co_await templates_->stop(deadline);
  }

 private:
  /// Tells when a run leaves the machine to others.
  class Use {
   public:
    Use(Templates* templates, const RunSpec& spec, Weight weight)
        : templates_(templates), layer_(spec.layer) {
      if (templates != nullptr) stock_ = templates->stock_for(spec.layer, spec.limits, weight);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { served(); }

    void served() const {
      if (templates_ != nullptr) templates_->served(stock_, layer_);
    }
    const std::shared_ptr<Stock>& stock() const { return stock_; }

   private:
    Templates* templates_;
    const layers::Layer& layer_;
    std::shared_ptr<Stock> stock_;  // shared with Templates
  };

  io::Task<Result<Arrival>> arrive(std::shared_ptr<Stock> stock, std::optional<Workspace> workspace,
                                   RunLimits limits) {
    if (stock) {
      auto taken = co_await Stock::take(std::move(stock), workspace);
      if (taken) co_return *std::move(taken);
    }
    if (!workspace) {
      auto made = co_await workspaces_();
      PRIMS_CO_ASSIGN_OR_RETURN(workspace, std::move(made));
    }
    const io::Executor executor = co_await io::this_executor;
    auto prepared = co_await host_.prepare(prepare_spec(interpreter_, limits));
    PRIMS_CO_ASSIGN_OR_RETURN(std::unique_ptr<sandbox::Sandbox> sandbox, std::move(prepared));
    Guest guest{*workspace, std::move(sandbox), std::make_shared<Conversation>(executor)};
    co_return Arrival{std::move(guest), *std::move(workspace), Path::plain};
  }

  /// False: the interpreter did not come up, and the outcome says why.
  io::Task<Result<bool>> get_ready(const Arrival* arrival, const RunSpec* spec) {
    StreamOptions streams = streams_for(*spec, arrival->guest.sandbox.get());
    if (arrival->path != Path::plain) {
      arrival->guest.conversation->capture(std::move(streams));
      PRIMS_CO_RETURN_ON_ERROR(arrival->guest.sandbox->watch());
      co_return true;
    }
    std::vector<sandbox::Attachment> attachments{workspace_attachment(arrival->workspace),
                                                 layer_attachment(spec->layer)};
    co_return co_await start_guest(&arrival->guest, std::move(attachments),
                                   start_spec(spec->limits.sandbox, host_.enforcement()), std::move(streams));
  }

  static StreamOptions streams_for(const RunSpec& spec, sandbox::Sandbox* sandbox) {
    const Bytes kept = spec.limits.kept_output;
    return {.shown = spec.limits.shown_output,
            .kept = kept,
            .on_output = spec.on_output,
            .on_overflow = [sandbox, kept] { sandbox->kill(sandbox::OutputLimit{kept}); }};
  }

  /// From the moment the guest gets its call to its end, or the end of its time.
  static io::Task<> see_through(const Guest* guest, Call call, Input input, Milliseconds wall, const Use* use,
                                RunResult* result) {
    const Clock::time_point begin = Clock::now();
    const Deadline deadline{begin + wall};
    sandbox::Sandbox* const sandbox = guest->sandbox.get();
    auto sent =
        co_await Conversation::hand_over(guest->conversation, std::move(call), std::move(input), deadline);
    if (!sent) log::debug("python: the call could not be sent: {}", sent.error().message);
    const Deadline soon{std::min(deadline.at, begin + kShortRun)};
    bool ended = co_await sandbox->ended_by(soon);
    if (!ended && soon.passed() && !deadline.passed()) {
      use->served();
      ended = co_await sandbox->ended_by(deadline);
    }
    if (!ended && !deadline.passed()) sandbox->kill(sandbox::Cancelled{});
    if (!ended && deadline.passed()) {
      result->last_line =
          co_await Conversation::ask_line(guest->conversation, sandbox, Deadline::after(kLineTime));
      sandbox->kill(sandbox::TimedOut{wall});
    }
    result->timings.run = since(begin);
  }

  void collect(const Guest& guest, const RunLimits& limits, RunResult& result) const {
    result.out = guest.conversation->take_output();
    result.err = guest.conversation->take_errors();
    result.usage = guest.sandbox->usage();
    result.note = guest.conversation->note();
    if (const auto& told = guest.conversation->result()) {
      result.error = told->error;
      result.value = told->value;
    }
    if (auto limit = refused_by_limit(result, limits.sandbox, host_.enforcement())) {
      result.outcome = *std::move(limit);
    }
  }

  static std::unexpected<Error> not_started(const Guest& guest, const RunResult& result) {
    const std::string& note = guest.conversation->note();
    const std::string said = to_utf8(last_lines(result.err.head, 5));
    return fail(Kind::unavailable,
                fmt::format("Python did not start in the sandbox: {}", note.empty() ? said : note));
  }

  sandbox::Host& host_;
  const layers::Interpreter interpreter_;
  const WorkspaceSource workspaces_;
  Scales scales_;
  const std::unique_ptr<Templates> templates_;  // none: every run is a plain one
};

}  // namespace

std::string_view to_string(Path path) {
  switch (path) {
    case Path::plain:
      return "plain";
    case Path::fork:
      return "fork";
    case Path::pool:
      return "pool";
  }
  return "plain";
}

std::unique_ptr<Runner> Runner::create(sandbox::Host& host, layers::Interpreter interpreter,
                                       WorkspaceSource workspaces) {
  return std::make_unique<SandboxRunner>(host, std::move(interpreter), std::move(workspaces), nullptr);
}

std::unique_ptr<Runner> Runner::create_warm(io::Executor executor, sandbox::Host& host,
                                            layers::Interpreter interpreter, WorkspaceSource workspaces,
                                            WarmOptions options) {
  auto templates = std::make_unique<Templates>(std::move(executor), host, interpreter, workspaces, options);
  return std::make_unique<SandboxRunner>(host, std::move(interpreter), std::move(workspaces),
                                         std::move(templates));
}

}  // namespace prims::python

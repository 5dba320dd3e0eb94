#include "sandbox/host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/random.h"
#include "launcher/image.h"
#include "launcher/kernel.h"
#include "sandbox/encode.h"
#include "sandbox/examine.h"
#include "sandbox/limit_backend.h"
#include "sandbox/process.h"
#include "sandbox/seccomp_policy.h"
#include "sandbox/spawn.h"
#include "sandbox/stage.h"
#include "sandbox/uid_pool.h"

namespace prims::sandbox {
namespace {

namespace wire = launcher::wire;

constexpr Milliseconds kPrepareTime{10'000};

/// What stays the same for every sandbox.
struct Machine {
  UniqueFd launcher;
  std::unique_ptr<LimitBackend> limits;
  std::optional<UidPool> uids;  ///< as root
  std::vector<ProcMask> masks;
  std::vector<std::uint8_t> filter;
  std::vector<std::uint8_t> template_filter;
  std::vector<std::uint8_t> fork_filter;
  std::vector<std::uint8_t> filter_of_fork_init;
  Tier tier = Tier::none;
  bool landlock = false;  ///< this kernel has it, so every sandbox must get it
};

Result<UniqueFd> load_launcher() {
  const auto image = launcher::image();
  const std::string_view bytes(reinterpret_cast<const char*>(image.data()), image.size());
  return make_memory_file("prims-launcher", bytes, MemoryFileUse::program);
}

class LinuxHost final : public Host {
 public:
  explicit LinuxHost(Machine machine) : machine_(std::move(machine)) {}

  io::Task<Result<std::unique_ptr<Sandbox>>> prepare(PrepareSpec spec) override {
    const io::Executor executor = co_await io::this_executor;
    PRIMS_CO_ASSIGN_OR_RETURN(auto process, launch(spec));
    process->listen(executor);
    auto ready = co_await Process::prepared(process, Deadline::after(kPrepareTime));
    PRIMS_CO_RETURN_ON_ERROR(std::move(ready));
    co_return make_sandbox(std::move(process));
  }

  io::Task<Result<std::unique_ptr<Template>>> make_template(TemplateSpec spec) override {
    const io::Executor executor = co_await io::this_executor;
    PRIMS_CO_ASSIGN_OR_RETURN(const std::shared_ptr<Stage> stage, launch_stage(&spec));
    stage->listen(executor);
    std::unique_ptr<Template> handle = sandbox::make_template(stage);  // ends it when something fails
    auto ready = co_await Process::prepared(stage, Deadline::after(kPrepareTime));
    PRIMS_CO_RETURN_ON_ERROR(std::move(ready));
    auto attached = co_await Process::attach(stage, std::move(spec.attachments));
    PRIMS_CO_RETURN_ON_ERROR(std::move(attached));
    auto started = co_await Process::start(stage, std::move(spec.start));
    PRIMS_CO_RETURN_ON_ERROR(std::move(started));
    stage->listen_to_program(executor);
    auto warm = co_await Stage::warmed_up(stage, Deadline::after(spec.warm_up));
    PRIMS_CO_RETURN_ON_ERROR(std::move(warm));
    co_return handle;
  }

  uid_t workspace_owner() const override {
    return machine_.uids ? machine_.uids->workspace_owner() : ::geteuid();
  }
  Tier tier() const override { return machine_.tier; }
  Enforcement enforcement() const override { return machine_.limits->enforcement(); }

 private:
  Result<std::shared_ptr<Process>> launch(const PrepareSpec& spec) {
    PRIMS_ASSIGN_OR_RETURN(Holdings holdings, hold(spec.limits));
    const auto entries = holdings.limits->entries();
    PRIMS_ASSIGN_OR_RETURN(const std::string encoded, encode_spec(spec, part_for(spec, holdings)));
    PRIMS_ASSIGN_OR_RETURN(Launched launched, spawn_launcher(machine_.launcher.get(), encoded, entries));
    return std::make_shared<LaunchedProcess>(std::move(launched), std::move(holdings));
  }

  Result<std::shared_ptr<Stage>> launch_stage(TemplateSpec* spec) {
    if (spec->forks == 0 || spec->forks > wire::kMaxSlots) {
      return fail(Kind::invalid_input, fmt::format("a template has 1 to {} forks", wire::kMaxSlots));
    }
    PRIMS_ASSIGN_OR_RETURN(Holdings holdings, hold(spec->limits));
    // Who counts processes from outside would count those of all forks for the template.
    holdings.add_to_limits = false;
    const auto entries = holdings.limits->entries();
    StagePlan plan{.slots = spec->forks, .leases = {}, .limits = spec->prepare.limits, .make_group = {}};
    plan.make_group = [this, limits = plan.limits] { return make_group(limits); };
    HostPart part = part_for(spec->prepare, holdings);
    part.settings.flags |= wire::kStage;
    part.settings.slots = static_cast<std::uint16_t>(plan.slots);
    part.settings.member_entries = part.settings.entries;
    part.filter = machine_.filter_of_fork_init;
    part.template_filter = machine_.template_filter;
    part.fork_filter = machine_.fork_filter;
    for (std::uint32_t slot = 0; machine_.uids && slot < plan.slots; ++slot) {
      PRIMS_ASSIGN_OR_RETURN(UidLease lease, machine_.uids->lease());
      part.slots.push_back({lease.uid(), lease.uid()});
      plan.leases.push_back(std::move(lease));
    }
    PRIMS_ASSIGN_OR_RETURN(const std::string encoded, encode_spec(spec->prepare, part));
    PRIMS_ASSIGN_OR_RETURN(Launched launched, spawn_launcher(machine_.launcher.get(), encoded, entries));
    PRIMS_ASSIGN_OR_RETURN(SocketPair sockets, make_sockets());
    spec->start.extra.clear();
    spec->start.extra.push_back(std::move(sockets.theirs));
    spec->start.extra.push_back(std::move(launched.spec));
    return std::make_shared<Stage>(std::move(launched), std::move(holdings), std::move(sockets.ours),
                                   std::move(plan));
  }

  Result<std::unique_ptr<LimitGroup>> make_group(const Limits& limits) {
    return machine_.limits->make_group("s-" + random_token(), limits);
  }

  Result<Holdings> hold(const Limits& limits) {
    Holdings holdings;
    holdings.requested = limits;
    if (machine_.uids) {
      PRIMS_ASSIGN_OR_RETURN(holdings.lease, machine_.uids->lease());
    }
    PRIMS_ASSIGN_OR_RETURN(holdings.limits, make_group(limits));
    holdings.add_to_limits = holdings.limits->entries().empty();
    return holdings;
  }

  HostPart part_for(const PrepareSpec& spec, const Holdings& holdings) const {
    return {.settings = settings_for(spec, holdings),
            .masks = machine_.masks,
            .rlimits = machine_.limits->rlimits(spec.limits),
            .filter = machine_.filter,
            .slots = {},
            .template_filter = {},
            .fork_filter = {}};
  }

  wire::Settings settings_for(const PrepareSpec& spec, const Holdings& holdings) const {
    wire::Settings settings;
    settings.outside_uid = holdings.lease ? holdings.lease->uid() : ::geteuid();
    settings.outside_gid = holdings.lease ? holdings.lease->uid() : ::getegid();
    settings.owner_id = workspace_owner();
    settings.broker_port = spec.broker_port;
    settings.entries = static_cast<std::uint16_t>(holdings.limits->entries().size());
    if (!machine_.uids) settings.flags |= wire::kOrdinaryUser;
    if (spec.network == Network::loopback_broker) settings.flags |= wire::kLoopbackBroker;
    if (holdings.add_to_limits) settings.flags |= wire::kAwaitProceed;
    if (machine_.landlock) settings.flags |= wire::kLandlockRequired;
    return settings;
  }

  Machine machine_;
};

}  // namespace

std::string_view to_string(Tier tier) {
  switch (tier) {
    case Tier::full:
      return "full";
    case Tier::namespaces:
      return "namespaces";
    case Tier::none:
      return "none";
  }
  return "none";
}

Result<std::unique_ptr<Host>> make_host(const HostOptions& options, Tier tier) {
  Machine machine;
  machine.tier = tier;
  machine.limits = make_limit_backend();
  const MemoryFiles files =
      machine.limits->counts_unmapped_memory() ? MemoryFiles::allowed : MemoryFiles::refused;
  PRIMS_ASSIGN_OR_RETURN(machine.filter, compile_seccomp(files));
  PRIMS_ASSIGN_OR_RETURN(machine.template_filter, compile_seccomp(files, Role::template_program));
  PRIMS_ASSIGN_OR_RETURN(machine.fork_filter, compile_seccomp(files, Role::fork));
  PRIMS_ASSIGN_OR_RETURN(machine.filter_of_fork_init, compile_seccomp(files, Role::init_of_fork));
  PRIMS_ASSIGN_OR_RETURN(machine.launcher, load_launcher());
  if (::geteuid() == 0) {
    PRIMS_ASSIGN_OR_RETURN(machine.uids, UidPool::open(options.first_uid, options.uid_count));
  }
  machine.masks = proc_masks();
  namespace kernel = launcher::kernel;
  machine.landlock = kernel::landlock_create_ruleset(nullptr, 0, kernel::kRulesetVersion) > 0;
  return std::make_unique<LinuxHost>(std::move(machine));
}

Result<std::unique_ptr<Host>> Host::create(HostOptions options) {
  const std::vector<Finding> findings = sandbox::examine(options);
  const Tier tier = tier_of(findings);
  if (tier == Tier::none || tier > options.minimum) {
    return fail(Kind::unavailable,
                fmt::format("isolation here is '{}', at least '{}' is asked for. {}", to_string(tier),
                            to_string(options.minimum), what_to_change(findings)));
  }
  return make_host(options, tier);
}

std::vector<Finding> Host::examine(HostOptions options) {
  return sandbox::examine(options);
}

}  // namespace prims::sandbox

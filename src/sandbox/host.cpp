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

  io::Task<Result<std::unique_ptr<Template>>> make_template(TemplateSpec) override {
    co_return fail(Kind::unavailable, "templates do not exist on this host");
  }

  uid_t workspace_owner() const override {
    return machine_.uids ? machine_.uids->workspace_owner() : ::geteuid();
  }
  Tier tier() const override { return machine_.tier; }
  Enforcement enforcement() const override { return machine_.limits->enforcement(); }

 private:
  Result<std::shared_ptr<Process>> launch(const PrepareSpec& spec) {
    Holdings holdings;
    holdings.requested = spec.limits;
    if (machine_.uids) {
      PRIMS_ASSIGN_OR_RETURN(holdings.lease, machine_.uids->lease());
    }
    PRIMS_ASSIGN_OR_RETURN(holdings.limits, machine_.limits->make_group("s-" + random_token(), spec.limits));
    const auto entries = holdings.limits->entries();
    holdings.add_to_limits = entries.empty();
    const HostPart part{.settings = settings_for(spec, holdings),
                        .masks = machine_.masks,
                        .rlimits = machine_.limits->rlimits(spec.limits),
                        .filter = machine_.filter};
    PRIMS_ASSIGN_OR_RETURN(const std::string encoded, encode_spec(spec, part));
    PRIMS_ASSIGN_OR_RETURN(Launched launched, spawn_launcher(machine_.launcher.get(), encoded, entries));
    return std::make_shared<Process>(std::move(launched), std::move(holdings));
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

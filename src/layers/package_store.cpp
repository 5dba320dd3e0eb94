#include "layers/package_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "io/loop.h"
#include "layers/hash.h"
#include "layers/lock.h"
#include "layers/tree.h"

namespace prims::layers {
namespace {

constexpr std::size_t kMostBuilds = 3;
constexpr int kKeyFormat = 1;
constexpr std::size_t kMostFlights = 256;
constexpr Milliseconds kPatience{50};
constexpr std::uint64_t kPartForCompiled = 10;  // of the room for layers: compiled modules that none has

std::string remedy(Kind kind) {
  switch (kind) {
    case Kind::exhausted:
      return "make room in the server's state directory (setting `state_dir`)";
    case Kind::denied:
      return "let the server write to its state directory (setting `state_dir`)";
    case Kind::invalid_input:
      return "mend or remove the file that the message names";
    case Kind::timed_out:
    case Kind::cancelled:
      return "try again later";
    default:
      return "give the server's machine access to the package index (setting `index_url`)";
  }
}

DependencyError no_installer(const Error& error) {
  return {.message = "Packages cannot be installed now: " + error.message + ".",
          .hint = "Run without requirements, or " + remedy(error.kind) + ".",
          .log = {}};
}

void add_note(Outcome& outcome, const std::string& note) {
  auto* layer = std::get_if<Layer>(&outcome);
  if (layer != nullptr && !note.empty()) layer->notes.push_back(note);
}

struct Skeleton {
  std::shared_ptr<BuildDirectory> build;
  TreeSize size;
};

/// Gives the place among the builders back.
class Leaving {
 public:
  explicit Leaving(std::shared_ptr<io::Channel<int>> places) : places_(std::move(places)) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() { std::ignore = places_->try_receive(); }

 private:
  std::shared_ptr<io::Channel<int>> places_;  // shared with the store, which may go before a suspended Task
};

}  // namespace

void PackageStore::Flight::report(const std::string& text) {
  last_report = text;
  for (const auto& listener : listeners) listener(text);
}

/// A caller's Progress hears of a flight for as long as this exists.
class PackageStore::Listening {
 public:
  Listening(std::shared_ptr<Flight> flight, Progress progress) : flight_(std::move(flight)) {
    if (!progress) return;
    if (!flight_->last_report.empty()) progress(flight_->last_report);
    place_ = flight_->listeners.insert(flight_->listeners.end(), std::move(progress));
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() {
    if (place_) flight_->listeners.erase(*place_);
  }

 private:
  std::shared_ptr<Flight> flight_;  // shared with its other waiters and the Task that flies it
  std::optional<std::list<Progress>::iterator> place_;
};

PackageStore::PackageStore(StoreOptions options, IndexSettings indexes, sandbox::Host& host,
                           io::Workers& workers)
    : options_(std::move(options)),
      index_settings_(std::move(indexes)),
      workers_(workers),
      shelf_(options_.state / "layers", options_.state / "builds"),
      resolutions_(options_.state / "resolutions", options_.resolution_lifetime),
      workshop_(host, options_.interpreter),
      installer_(options_.state, options_.interpreter, workshop_, workers),
      building_(std::make_shared<io::Channel<int>>(kMostBuilds)) {}

PackageStore::Wish PackageStore::wish_for(RequirementSet set, Base base) const {
  Wish wish{.set = std::move(set), .with_base = base == Base::with && !options_.base.empty(), .key = {}};
  const auto packages = wish.with_base ? fmt::format("{}", fmt::join(options_.base, "\n")) : std::string();
  wish.key = sha256_hex(fmt::format("{}\n{}\n{}\n{}\n\n{}", kKeyFormat, options_.interpreter.key,
                                    index_settings_.identity, packages, wish.set.text()))
                 .substr(0, 40);
  return wish;
}

std::optional<Layer> PackageStore::find_known(const Wish& wish) {
  const auto known = resolutions_.find(wish.key);
  if (!known || !resolutions_.fresh(*known)) return std::nullopt;
  auto layer = shelf_.find(known->layer);
  if (!layer) return std::nullopt;
  layer->notes = wish.set.notes;
  if (!known->note.empty()) layer->notes.push_back(known->note);
  return layer;
}

std::optional<Layer> PackageStore::find(const Request& request) {
  auto read = read_requirements(request.requirements, options_.interpreter);
  auto* set = std::get_if<RequirementSet>(&read);
  if (set == nullptr) return std::nullopt;
  const auto wish = wish_for(std::move(*set), request.base);
  if (!wish.set.empty() || wish.with_base) return find_known(wish);
  auto layer = shelf_.find(layer_hash("plain", options_.interpreter));
  if (layer) layer->notes = wish.set.notes;
  return layer;
}

io::Task<Result<Layer>> PackageStore::plain() {
  const auto hash = layer_hash("plain", options_.interpreter);
  auto finding = co_await find_checked(hash);
  PRIMS_CO_ASSIGN_OR_RETURN(auto there, std::move(finding));
  if (there) co_return *std::move(there);
  const auto builds = options_.state / "builds";
  const auto interpreter = options_.interpreter;
  auto job = [builds, interpreter]() -> Result<Skeleton> {
    PRIMS_ASSIGN_OR_RETURN(auto build, BuildDirectory::create(builds));
    PRIMS_RETURN_ON_ERROR(write_skeleton(build.path() / "env", interpreter, ::geteuid()));
    PRIMS_ASSIGN_OR_RETURN(const auto size, finish_tree(build.path() / "env"));
    return Skeleton{std::make_shared<BuildDirectory>(std::move(build)), size};
  };
  auto making = co_await workers_.run(std::move(job));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto made, std::move(making));
  auto published = co_await publish(made.build, hash, {}, made.size);
  co_return published;
}

io::Task<Result<std::optional<Layer>>> PackageStore::find_checked(std::string hash) {
  if (auto layer = shelf_.find(hash)) co_return layer;
  auto check = [this, hash] { shelf_.check(hash); };
  auto checked = co_await workers_.run(std::move(check));
  PRIMS_CO_RETURN_ON_ERROR(std::move(checked));
  co_return shelf_.find(hash);
}

io::Task<Result<Layer>> PackageStore::publish(std::shared_ptr<BuildDirectory> build, std::string hash,
                                              std::vector<std::string> packages, TreeSize size) {
  auto job = [this, build, hash, packages, size] { return shelf_.publish(*build, hash, packages, size); };
  auto published = co_await workers_.run(std::move(job));
  PRIMS_CO_RETURN_ON_ERROR(std::move(published));
  auto layer = shelf_.find(hash);
  if (layer) co_return *std::move(layer);
  co_return fail(Kind::unavailable, "the layer " + hash + " was removed right after it had been made");
}

io::Task<Result<Outcome>> PackageStore::get(Request request, Progress progress) {
  auto read = read_requirements(request.requirements, options_.interpreter);
  if (auto* refused = std::get_if<DependencyError>(&read)) co_return std::move(*refused);
  const auto wish = wish_for(std::get<RequirementSet>(std::move(read)), request.base);
  if (wish.set.empty() && !wish.with_base) {
    auto bare = co_await plain();
    PRIMS_CO_ASSIGN_OR_RETURN(auto layer, std::move(bare));
    layer.notes = wish.set.notes;
    co_return std::move(layer);
  }
  if (auto layer = find_known(wish)) co_return *std::move(layer);

  const auto executor = co_await io::this_executor;
  const auto flight = join(wish, executor);
  if (!flight)
    co_return fail(Kind::exhausted, "too many sets of packages are being made at once; try again later");
  const Listening listening(flight, std::move(progress));
  auto waited = co_await flight->done.wait();
  PRIMS_CO_RETURN_ON_ERROR(std::move(waited));
  auto outcome = *flight->answer;
  if (outcome) {
    for (const auto& note : wish.set.notes) add_note(*outcome, note);
  }
  co_return outcome;
}

std::shared_ptr<PackageStore::Flight> PackageStore::join(const Wish& wish, const io::Executor& executor) {
  if (const auto under_way = flights_.find(wish.key); under_way != flights_.end()) return under_way->second;
  if (flights_.size() >= kMostFlights) return nullptr;
  auto flight = std::make_shared<Flight>();
  flights_.emplace(wish.key, flight);
  if (!tasks_) tasks_.emplace(executor);
  tasks_->spawn(fly(wish, flight), "making packages");
  return flight;
}

io::Task<Result<>> PackageStore::stop(Deadline deadline) {
  // A task that is asked to end may still start another wait, so it is asked again.
  while (tasks_ && tasks_->size() > 0) {
    tasks_->cancel();
    auto joined = co_await tasks_->join(Deadline::after(kPatience));
    if (!joined && deadline.passed()) co_return std::move(joined);
  }
  co_return Result<>();
}

io::Task<> PackageStore::fly(Wish wish, std::shared_ptr<Flight> flight) {
  const auto key = wish.key;
  try {
    auto outcome = co_await make(std::move(wish), flight);
    flight->answer = std::move(outcome);
  } catch (const std::exception& failure) {
    flight->answer = fail(Kind::internal, fmt::format("making packages: {}", failure.what()));
  }
  flights_.erase(key);
  flight->done.set();
}

io::Task<Result<Outcome>> PackageStore::make(Wish wish, std::shared_ptr<Flight> flight) {
  const auto deadline = Deadline::after(options_.install_timeout);
  if (!std::exchange(swept_, true)) {
    const auto builds = options_.state / "builds";
    const auto resolutions = options_.state / "resolutions";
    auto job = [builds, resolutions] {
      sweep_builds(builds);
      sweep_resolutions(resolutions);
    };
    auto swept = co_await workers_.run(std::move(job));
    PRIMS_CO_RETURN_ON_ERROR(std::move(swept));
  }
  auto locking = co_await lock_for(wish.key, flight, deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(const auto lock, std::move(locking));
  const auto known = resolutions_.find(wish.key);
  if (known && resolutions_.fresh(*known)) {
    auto checked = co_await find_checked(known->layer);
    PRIMS_CO_RETURN_ON_ERROR(std::move(checked));
  }
  // Another process may have made it while this one waited.
  if (auto layer = find_known(wish)) {
    layer->notes.clear();
    co_return *std::move(layer);
  }
  auto tool = co_await ready_uv(flight, deadline);
  if (!tool) co_return no_installer(tool.error());
  auto asked = co_await ready_indexes(flight, deadline);
  if (!asked) co_return no_installer(asked.error());
  auto made = co_await make_with(std::move(wish), *std::move(asked), flight, deadline);
  co_return made;
}

io::Task<Result<KeyLock>> PackageStore::lock_for(std::string key, std::shared_ptr<Flight> flight,
                                                 Deadline deadline) {
  PRIMS_CO_ASSIGN_OR_RETURN(auto free, KeyLock::try_take(lock_file(), key));
  if (free) co_return *std::move(free);
  flight->report("waiting for another build");
  auto taken = co_await KeyLock::take(lock_file(), std::move(key), deadline);
  co_return taken;
}

io::Task<Result<Outcome>> PackageStore::make_with(Wish wish, std::vector<std::string> indexes,
                                                  std::shared_ptr<Flight> flight, Deadline deadline) {
  flight->report(wish.set.empty() ? std::string("resolving the base packages")
                                  : fmt::format("resolving {}", fmt::join(wish.set.names(), ", ")));
  auto resolving = co_await resolution_for(std::move(wish), indexes, deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(auto resolved, std::move(resolving));
  if (auto* failure = std::get_if<DependencyError>(&resolved)) co_return std::move(*failure);
  auto resolution = std::get<Resolution>(std::move(resolved));
  const auto note = resolution.note;
  auto made = co_await layer_for(std::move(resolution), std::move(indexes), flight, deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(auto outcome, std::move(made));
  add_note(outcome, note);
  co_return outcome;
}

io::Task<Result<Outcome>> PackageStore::layer_for(Resolution resolution, std::vector<std::string> indexes,
                                                  std::shared_ptr<Flight> flight, Deadline deadline) {
  auto finding = co_await find_checked(resolution.layer);
  PRIMS_CO_ASSIGN_OR_RETURN(auto there, std::move(finding));
  if (there) co_return *std::move(there);
  if (building_->size() >= kMostBuilds) flight->report("waiting for another build");
  auto admitted = co_await building_->send(0, deadline);
  PRIMS_CO_RETURN_ON_ERROR(std::move(admitted));
  const Leaving leaving(building_);
  // Different requirements may come to the same lock.
  auto locking = co_await lock_for("layer " + resolution.layer, flight, deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(const auto lock, std::move(locking));
  if (auto layer = shelf_.find(resolution.layer)) co_return *std::move(layer);
  auto built = co_await build(std::move(resolution), std::move(indexes), flight, deadline);
  co_return built;
}

io::Task<Result<Outcome>> PackageStore::build(Resolution resolution, std::vector<std::string> indexes,
                                              std::shared_ptr<Flight> flight, Deadline deadline) {
  const auto builds = options_.state / "builds";
  auto job = [builds]() -> Result<std::shared_ptr<BuildDirectory>> {
    PRIMS_ASSIGN_OR_RETURN(auto made, BuildDirectory::create(builds));
    return std::make_shared<BuildDirectory>(std::move(made));
  };
  auto making = co_await workers_.run(std::move(job));
  PRIMS_CO_ASSIGN_OR_RETURN(auto directory, std::move(making));
  const auto hash = resolution.layer;
  auto packages = locked_packages(resolution.lock);
  Locked locked{.lock = std::move(resolution.lock), .needs_build = resolution.needs_build};
  Progress progress = [flight](const std::string& text) { flight->report(text); };
  auto installing = co_await installer_.install(directory->path(), std::move(locked), std::move(indexes),
                                                progress, deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(auto installed, std::move(installing));
  if (auto* failure = std::get_if<Diagnosis>(&installed)) co_return std::move(failure->error);
  auto published = co_await publish(directory, hash, std::move(packages), std::get<TreeSize>(installed));
  PRIMS_CO_ASSIGN_OR_RETURN(auto layer, std::move(published));
  tasks_->spawn(keep_house(&workers_, options_.state, options_.size_limit, std::move(directory)),
                "keeping the package store in order");
  co_return std::move(layer);
}

io::Task<> PackageStore::keep_house(io::Workers* workers, std::filesystem::path state, Bytes limit,
                                    std::shared_ptr<BuildDirectory> leftovers) {
  auto job = [state, limit, remains = std::move(leftovers)]() mutable {
    remains.reset();
    const Shelf shelf(state / "layers", state / "builds");
    shelf.collect(limit);
    collect_cache(state, limit);
    collect_compiled(state / "compiled", state / "builds", Bytes{limit.count / kPartForCompiled});
  };
  auto done = co_await workers->run(std::move(job));
  if (!done) log::warning("the package store is not kept in order: {}", done.error().message);
}

}  // namespace prims::layers

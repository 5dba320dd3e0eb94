#include "python/templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "io/wait.h"
#include "python/environment.h"

namespace prims::python {
namespace {

constexpr std::size_t kMostEntries = 64;
constexpr std::uint32_t kMostForks = 128;
/// Environments used within this time have guests waiting.
constexpr Milliseconds kInUse{60'000};
/// A template that was used so recently is not taken down for another.
constexpr Milliseconds kTenure{10'000};
/// A template that has lived so long was no failure.
constexpr Milliseconds kProvenLife{10'000};
constexpr Milliseconds kFirstRetry{1'000};
constexpr std::uint32_t kMostDoublings = 9;
constexpr Milliseconds kTendInterval{10'000};

/// Everything of an environment that a template has in it.
std::string name_of(const layers::Layer& layer, const RunLimits& limits, Weight weight) {
  const sandbox::Limits& l = limits.sandbox;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", layer.directory.native(), weight == Weight::heavy,
                     l.memory.count, l.processes, l.cpus, l.cpu_time.count(), l.file_size.count, l.open_files,
                     l.workspace.count, limits.tmp.count, limits.shm.count);
}

}  // namespace

Templates::Templates(io::Executor executor, sandbox::Host& host, layers::Interpreter interpreter,
                     WorkspaceSource workspaces, WarmOptions options, Now now)
    : host_(host),
      interpreter_(std::move(interpreter)),
      workspaces_(std::move(workspaces)),
      options_(options),
      now_(std::move(now)),
      makers_(executor),
      enders_(executor) {}

std::shared_ptr<Stock> Templates::stock_for(const layers::Layer& layer, const RunLimits& limits,
                                            Weight weight) {
  std::string name = name_of(layer, limits, weight);
  const auto found = std::ranges::find(entries_, name, [](const Entry& e) { return e.stock->name(); });
  if (found != entries_.end()) {
    std::rotate(found, found + 1, entries_.end());
  } else {
    if (entries_.size() == kMostEntries) forget_oldest();
    Entry entry;
    entry.weight = weight;
    entry.stock =
        std::make_shared<Stock>(std::move(name), limits, workspaces_, Stock::Scopes{&makers_, &enders_});
    entries_.push_back(std::move(entry));
  }
  entries_.back().used = now_();
  return entries_.back().stock;
}

void Templates::served(std::shared_ptr<Stock> stock, const layers::Layer& layer) {
  Entry* entry = find(stock->name());
  if (stopped_ || entry == nullptr) return;
  if (!std::exchange(tending_, true)) makers_.spawn(tend_on(this), "tend templates");
  if (stock->works()) return fill(*entry);
  ask_for_template(*entry, layer);
}

void Templates::ask_for_template(Entry& entry, const layers::Layer& layer) {
  if (entry.stock->broken()) {
    const bool proven = now_() - entry.made > kProvenLife;
    if (proven) entry.failures = 0;
    give_up(entry, "it died");
    if (proven) entry.retry = now_();
  }
  if (now_() < entry.retry) return;
  entry.layer = layer;
  make_next();
}

/// The most recently used environment that has none and may have one.
void Templates::make_next() {
  if (making_ || stopped_) return;
  for (std::size_t i = entries_.size(); i-- > 0;) {
    Entry& entry = entries_[i];
    if (!entry.layer || entry.stock->works() || now_() < entry.retry) continue;
    Ahead ahead = imports_ahead(entry.layer->packages, entry.weight);
    ahead.memory = std::min(ahead.memory, options_.memory);
    if (!make_room_for(entry, ahead.memory)) {
      entry.layer.reset();  // its next use asks again
      continue;
    }
    making_ = true;
    entry.memory = ahead.memory;
    sandbox::TemplateSpec spec =
        template_spec(interpreter_, *entry.layer, entry.stock->limits(), host_.enforcement(), ahead);
    spec.forks = std::min(options_.concurrent_runs + 2 * options_.pool_size, kMostForks);
    makers_.spawn(make(this, entry.stock, std::move(spec), *entry.layer), "make a template");
    return;
  }
}

io::Task<> Templates::make(Templates* self, std::shared_ptr<Stock> stock, sandbox::TemplateSpec spec,
                           layers::Layer layer) {
  const Clock::time_point begin = Clock::now();
  auto made = co_await Stock::make_template(stock, &self->host_, std::move(spec), std::move(layer));
  self->making_ = false;
  Entry* entry = self->find(stock->name());
  if (self->stopped_ || entry == nullptr || entry->stock != stock) {
    stock->clear();
    co_return;
  }
  if (made) {
    log::debug("python: a template was made in {} ms",
               std::chrono::duration_cast<Milliseconds>(Clock::now() - begin).count());
    entry->made = self->now_();
    self->fill(*entry);
  } else {
    self->give_up(*entry, made.error().message);
  }
  self->make_next();
}

/// Takes templates down, the least recently used first, but only when that is enough.
bool Templates::make_room_for(const Entry& wanting, Bytes needed) {
  std::uint64_t held = needed.count;
  for (const Entry& entry : entries_) held += &entry == &wanting ? 0 : entry.memory.count;
  std::vector<Entry*> victims;
  for (Entry& entry : entries_) {
    if (held <= options_.memory.count) break;
    if (&entry == &wanting || entry.memory.count == 0 || now_() - entry.used < kTenure) continue;
    held -= entry.memory.count;
    victims.push_back(&entry);
  }
  if (held > options_.memory.count) return false;
  for (Entry* victim : victims) drop(*victim);
  return true;
}

void Templates::give_up(Entry& entry, const std::string& reason) {
  const Milliseconds pause = kFirstRetry * (1U << std::min(entry.failures, kMostDoublings));
  if (entry.failures++ == 0) {
    log::info("python: no template for an environment at the moment: {}", reason);
  } else {
    log::debug("python: no template for an environment: {}", reason);
  }
  drop(entry);
  entry.retry = now_() + pause;
}

void Templates::drop(Entry& entry) {
  entry.stock->clear();
  entry.layer.reset();
  entry.memory = {};
}

/// As many waiting guests as an environment in use has; less recently used ones give up theirs for it.
void Templates::fill(Entry& entry) {
  std::size_t others = 0;
  for (const Entry& other : entries_) others += &other == &entry ? 0 : other.stock->wanted();
  const std::size_t total = options_.pool_total;
  const std::size_t wanted = std::min<std::size_t>(options_.pool_size, total);
  for (Entry& other : entries_) {
    if (&other == &entry || others + wanted <= total) break;
    others -= other.stock->wanted();
    other.stock->set_wanted(0);
  }
  entry.stock->set_wanted(std::min(wanted, total - std::min(others, total)));
}

void Templates::tend() {
  if (stopped_) return;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const bool last_used = i + 1 == entries_.size();
    if (now_() - entry.used > kInUse) {
      entry.stock->set_wanted(std::min<std::size_t>(entry.stock->wanted(), last_used ? 1 : 0));
    } else if (entry.stock->broken()) {
      const layers::Layer layer = *entry.layer;
      ask_for_template(entry, layer);
    } else if (entry.stock->works()) {
      entry.stock->set_wanted(entry.stock->wanted());
    }
  }
}

io::Task<> Templates::tend_on(Templates* self) {
  for (;;) {
    auto slept = co_await io::sleep_until(Deadline::after(kTendInterval));
    if (!slept) co_return;
    self->tend();
  }
}

io::Task<Result<>> Templates::stop(Deadline deadline) {
  stopped_ = true;
  makers_.cancel();
  for (Entry& entry : entries_) drop(entry);
  auto made = co_await makers_.join(deadline);
  PRIMS_CO_RETURN_ON_ERROR(std::move(made));
  co_return co_await enders_.join(deadline);
}

Templates::Entry* Templates::find(const std::string& name) {
  const auto found = std::ranges::find(entries_, name, [](const Entry& e) { return e.stock->name(); });
  return found == entries_.end() ? nullptr : &*found;
}

void Templates::forget_oldest() {
  drop(entries_.front());
  entries_.erase(entries_.begin());
}

}  // namespace prims::python

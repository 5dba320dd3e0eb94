// The half of PackageStore that finds out what a wish resolves to.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "layers/hash.h"
#include "layers/lock.h"
#include "layers/package_store.h"
#include "layers/uv_tool.h"

namespace prims::layers {
namespace {

bool may_be_the_bases_fault(Cause cause) {
  return cause != Cause::unreachable && cause != Cause::refused;
}

std::string read_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace

io::Task<Result<>> PackageStore::ready_uv(std::shared_ptr<Flight> flight, Deadline deadline) {
  auto uv = uv_if_there(options_.state);
  if (uv.empty()) {
    auto locking = co_await lock_for("uv", flight, deadline);
    PRIMS_CO_ASSIGN_OR_RETURN(const auto lock, std::move(locking));
    flight->report("fetching the installer (uv)");
    UvSource source{.state = options_.state,
                    .interpreter = options_.interpreter,
                    .program_directory = options_.program_directory,
                    .index_url = index_settings_.default_url.value_or(""),
                    .extra_index_urls = index_settings_.extra};
    auto ensured = co_await ensure_uv(std::move(source), &workers_);
    PRIMS_CO_ASSIGN_OR_RETURN(uv, std::move(ensured));
  }
  workshop_.set_uv(uv);
  co_return Result<>();
}

io::Task<Result<std::vector<std::string>>> PackageStore::ready_indexes(std::shared_ptr<Flight> flight,
                                                                       Deadline deadline) {
  if (indexes_) co_return *indexes_;
  auto all = index_settings_.extra;
  auto last = index_settings_.default_url.value_or("");
  if (last.empty()) {
    // This uv with these settings always gives the same answer.
    const auto kept = options_.state / "resolutions" /
                      ("index-" + sha256_hex(fmt::format("{}\n{}", uv_version(), index_settings_.identity)));
    auto read = [kept] { return read_line(kept); };
    auto reading = co_await workers_.run(std::move(read));
    PRIMS_CO_ASSIGN_OR_RETURN(last, std::move(reading));
    if (last.empty()) {
      flight->report("asking uv for the package index");
      auto asked = co_await installer_.default_index(index_settings_.uv_files, deadline);
      PRIMS_CO_ASSIGN_OR_RETURN(last, std::move(asked));
      auto write = [kept, last] { return replace_file(kept, last + "\n"); };
      std::ignore = co_await workers_.run(std::move(write));
    }
  }
  all.push_back(std::move(last));
  indexes_ = all;
  co_return all;
}

io::Task<Result<std::variant<Resolution, DependencyError>>> PackageStore::resolution_for(
    Wish wish, std::vector<std::string> indexes, Deadline deadline) {
  const auto known = resolutions_.find(wish.key);
  if (known && resolutions_.fresh(*known)) co_return *known;
  const auto key = wish.key;
  auto resolving = co_await resolve(std::move(wish), std::move(indexes), deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(auto resolved, std::move(resolving));
  if (auto* failure = std::get_if<Diagnosis>(&resolved)) {
    // An old answer is better than none when the index is away.
    if (failure->cause == Cause::unreachable && known) co_return *known;
    co_return std::move(failure->error);
  }
  auto& resolution = std::get<Resolution>(resolved);
  resolutions_.remember(key, resolution);
  auto write = [this, key, resolution] { return resolutions_.write(key, resolution); };
  const auto kept = co_await workers_.run(std::move(write));
  if (!kept) log::warning("a resolution is not remembered: {}", kept.error().message);
  co_return std::move(resolution);
}

io::Task<Result<std::variant<Resolution, Diagnosis>>> PackageStore::resolve(Wish wish,
                                                                            std::vector<std::string> indexes,
                                                                            Deadline deadline) {
  const auto alone = wish.set.text();
  auto compiling = co_await installer_.resolve(alone + base_lines(wish), indexes, deadline);
  PRIMS_CO_ASSIGN_OR_RETURN(auto compiled, std::move(compiling));
  std::string note;
  const auto* failure = std::get_if<Diagnosis>(&compiled);
  if (failure != nullptr && wish.with_base && !wish.set.empty() && may_be_the_bases_fault(failure->cause)) {
    // The caller's wish wins over the base packages.
    auto again = co_await installer_.resolve(alone, std::move(indexes), deadline);
    PRIMS_CO_ASSIGN_OR_RETURN(compiled, std::move(again));
    note = fmt::format(
        "The base packages ({}) are left out, because they do not go together with the requirements.",
        fmt::join(options_.base, ", "));
  }
  if (auto* last = std::get_if<Diagnosis>(&compiled)) co_return std::move(*last);
  auto& locked = std::get<Locked>(compiled);
  auto layer = layer_hash(locked.lock, options_.interpreter);
  co_return Resolution{.lock = std::move(locked.lock),
                       .layer = std::move(layer),
                       .needs_build = locked.needs_build,
                       .note = std::move(note),
                       .made = std::chrono::system_clock::now()};
}

std::string PackageStore::base_lines(const Wish& wish) const {
  std::string lines;
  if (!wish.with_base) return lines;
  const auto wanted = wish.set.names();
  for (const auto& package : options_.base) {
    const auto read = read_requirement(package);
    const auto* requirement = std::get_if<Requirement>(&read);
    if (requirement == nullptr) continue;
    if (std::ranges::find(wanted, requirement->name) == wanted.end()) lines += requirement->line + "\n";
  }
  return lines;
}

}  // namespace prims::layers

#include "layers/shelf.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "json/json.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnvironment = "env";
constexpr const char* kRecord = "layer.json";
constexpr const char* kUse = "use";
constexpr auto kTouchPause = std::chrono::minutes(10);
constexpr std::size_t kMostKnown = 1024;

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

const std::string& boot() {
  static const std::string id = read_file("/proc/sys/kernel/random/boot_id");
  return id;
}

struct Record {
  std::vector<std::string> packages;
  std::string boot;
  TreeSize size;
};

std::string to_text(const Record& record) {
  json::Array packages;
  for (const auto& package : record.packages) packages.emplace_back(package);
  return json::write(json::Object{{"packages", std::move(packages)},
                                  {"boot", record.boot},
                                  {"disk", record.size.disk.count},
                                  {"content", record.size.content.count},
                                  {"entries", record.size.entries}});
}

std::uint64_t number(const json::Object& object, std::string_view key) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(json::integer_field(object, key).value_or(0), 0));
}

std::optional<Record> read_record(const fs::path& layer) {
  const auto parsed = json::parse(read_file(layer / kRecord));
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const auto& object = parsed->as_object();
  const auto* packages = json::array_field(object, "packages");
  if (packages == nullptr) return std::nullopt;
  Record record{.packages = {},
                .boot = json::string_field(object, "boot").value_or(""),
                .size = {.disk = Bytes{number(object, "disk")},
                         .content = Bytes{number(object, "content")},
                         .entries = number(object, "entries")}};
  for (const auto& package : *packages) {
    if (package.is_string()) record.packages.push_back(json::text(package.as_string()));
  }
  return record;
}

Result<> write_record(const fs::path& layer, const Record& record) {
  return replace_file(layer / kRecord, to_text(record));
}

/// The lock on a layer's `use` file when it can be had at once and the layer still stands under its name.
std::optional<UniqueFd> try_lock_use(const fs::path& layer, int how) {
  const auto file = layer / kUse;
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || ::flock(fd.get(), how | LOCK_NB) != 0) return std::nullopt;
  struct stat held{};
  struct stat named{};
  const bool same =
      ::fstat(fd.get(), &held) == 0 && ::stat(file.c_str(), &named) == 0 && held.st_ino == named.st_ino;
  if (!same) return std::nullopt;
  return fd;
}

/// Whether a layer is as it was published. In the boot that made it, it is; later a power failure may have
/// come between.
bool intact(const fs::path& layer, Record& record) {
  if (record.boot == boot()) return true;
  // File systems set a file's length when its content is on the disk, so lengths tell.
  const auto size = measure_tree(layer / kEnvironment);
  if (!size || size->content != record.size.content || size->entries != record.size.entries) return false;
  record.boot = boot();
  // Unwritten, the layer is measured again next time.
  std::ignore = write_record(layer, record);
  return true;
}

/// Takes a layer that nobody uses off the shelf and removes it. The rename comes first, so nobody ever sees a
/// part of it.
bool remove_unused(const fs::path& layer, const fs::path& builds) {
  auto lock = try_lock_use(layer, LOCK_EX);
  if (!lock) return false;
  auto grave = BuildDirectory::create(builds);
  if (!grave) return false;
  std::error_code failed;
  fs::rename(layer, grave->path() / "removed", failed);
  return !failed;
}

struct Candidate {
  fs::path layer;
  fs::file_time_type used;
  Bytes size;
};

std::vector<Candidate> least_recent_first(const fs::path& layers) {
  std::vector<Candidate> all;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(layers, failed)) {
    const auto record = read_record(entry.path());
    const auto used = fs::last_write_time(entry.path() / kUse, failed);
    if (record && !failed) all.push_back({entry.path(), used, record->size.disk});
  }
  std::ranges::sort(all, {}, &Candidate::used);
  return all;
}

}  // namespace

Shelf::Shelf(fs::path layers, fs::path builds) : layers_(std::move(layers)), builds_(std::move(builds)) {}

Lease Shelf::lease(const std::string& hash, Known& known) const {
  if (auto held = known.lease.lock()) return held;
  auto fd = try_lock_use(layers_ / hash, LOCK_SH);
  if (!fd) return nullptr;
  const auto now = Clock::now();
  // Writing a time may wait for the disk, so not at each use.
  if (known.touched == Clock::time_point() || now - known.touched > kTouchPause) {
    ::futimens(fd->get(), nullptr);
    known.touched = now;
  }
  auto held = std::make_shared<const UniqueFd>(*std::move(fd));
  known.lease = held;
  return held;
}

std::optional<Layer> Shelf::find(const std::string& hash) {
  const auto path = layers_ / hash;
  const auto place = known_.find(hash);
  Known fresh;
  auto& known = place == known_.end() ? fresh : place->second;
  auto held = lease(hash, known);
  if (!held) return std::nullopt;
  if (place == known_.end()) {
    auto record = read_record(path);
    if (!record || record->boot != boot()) return std::nullopt;
    known.packages = std::move(record->packages);
  }
  Layer layer{.lock = hash,
              .directory = path / kEnvironment,
              .packages = known.packages,
              .notes = {},
              .lease = std::move(held)};
  if (place == known_.end()) {
    if (known_.size() >= kMostKnown)
      std::erase_if(known_, [](const auto& entry) { return entry.second.lease.expired(); });
    known_.emplace(hash, std::move(fresh));
  }
  return layer;
}

void Shelf::check(const std::string& hash) const {
  const auto path = layers_ / hash;
  auto record = read_record(path);
  if (!record || intact(path, *record)) return;
  log::warning("the package layer {} is damaged and is made anew", hash);
  remove_unused(path, builds_);
}

Result<> Shelf::publish(const BuildDirectory& build, const std::string& hash,
                        std::vector<std::string> packages, TreeSize size) const {
  const auto staged = build.path() / "layer";
  std::error_code failed;
  fs::create_directory(staged, failed);
  fs::rename(build.path() / kEnvironment, staged / kEnvironment, failed);
  if (failed) return fail_errno("stage a layer", failed.value());
  const Record record{.packages = std::move(packages), .boot = boot(), .size = size};
  PRIMS_RETURN_ON_ERROR(write_record(staged, record));
  PRIMS_RETURN_ON_ERROR(replace_file(staged / kUse, ""));
  if (::rename(staged.c_str(), (layers_ / hash).c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    return fail_errno((layers_ / hash).string());
  }
  return {};
}

std::size_t Shelf::collect(Bytes limit) const {
  const auto all = least_recent_first(layers_);
  std::uint64_t total = 0;
  for (const auto& candidate : all) total += candidate.size.count;
  std::size_t removed = 0;
  for (const auto& candidate : all) {
    if (total <= limit.count) break;
    if (!remove_unused(candidate.layer, builds_)) continue;
    log::info("removed the least recently used package layer {}", candidate.layer.filename().string());
    total -= candidate.size.count;
    ++removed;
  }
  return removed;
}

}  // namespace prims::layers

#include "layers/resolutions.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "json/json.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFormat = 1;
constexpr std::size_t kMostInMemory = 1024;
constexpr auto kForgottenAfter = std::chrono::hours(24 * 30);

std::int64_t seconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string to_text(const Resolution& resolution) {
  return json::write(json::Object{{"format", kFormat},
                                  {"made", seconds(resolution.made)},
                                  {"layer", resolution.layer},
                                  {"needs_build", resolution.needs_build},
                                  {"note", resolution.note},
                                  {"lock", resolution.lock}});
}

std::optional<Resolution> from_text(const std::string& text) {
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const auto& object = parsed->as_object();
  const auto made = json::integer_field(object, "made");
  auto layer = json::string_field(object, "layer");
  auto lock = json::string_field(object, "lock");
  if (json::integer_field(object, "format") != kFormat || !made || !layer || !lock) return std::nullopt;
  const auto* build = json::find(object, "needs_build");
  return Resolution{.lock = *std::move(lock),
                    .layer = *std::move(layer),
                    .needs_build = build != nullptr && build->is_bool() && build->as_bool(),
                    .note = json::string_field(object, "note").value_or(""),
                    .made = std::chrono::system_clock::time_point(std::chrono::seconds(*made))};
}

}  // namespace

Resolutions::Resolutions(fs::path directory, std::chrono::hours lifetime)
    : directory_(std::move(directory)), lifetime_(lifetime) {}

fs::path Resolutions::file_of(const std::string& key) const {
  return directory_ / (key + ".json");
}

std::shared_ptr<const Resolution> Resolutions::find(const std::string& key) {
  const auto known = known_.find(key);
  // A newer one of another process is looked for only when ours is too old.
  if (known != known_.end() && fresh(*known->second)) return known->second;
  std::ifstream stream(file_of(key), std::ios::binary);
  if (!stream) return nullptr;
  std::ostringstream text;
  text << stream.rdbuf();
  auto resolution = from_text(std::move(text).str());
  if (!resolution) return nullptr;
  remember(key, *std::move(resolution));
  return known_.at(key);
}

bool Resolutions::fresh(const Resolution& resolution) const {
  const auto age = std::chrono::system_clock::now() - resolution.made;
  // A time in the future is a clock that was set back.
  return age < lifetime_ && age > -std::chrono::hours(1);
}

void Resolutions::remember(const std::string& key, Resolution resolution) {
  if (known_.size() >= kMostInMemory) known_.clear();
  known_.insert_or_assign(key, std::make_shared<const Resolution>(std::move(resolution)));
}

Result<> Resolutions::write(const std::string& key, const Resolution& resolution) const {
  return replace_file(file_of(key), to_text(resolution));
}

void sweep_resolutions(const fs::path& directory) {
  std::error_code failed;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    const auto written = entry.last_write_time(failed);
    if (!failed && now - written > kForgottenAfter) fs::remove(entry.path(), failed);
  }
}

}  // namespace prims::layers

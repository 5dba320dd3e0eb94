#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "json/json.h"
#include "server/app.h"
#include "server/settings_table.h"

namespace prims::cli {
namespace {

std::string as_json(const server::LoadedSettings& loaded) {
  json::Object settings;
  for (const server::EffectiveValue& value : loaded.effective) {
    settings[value.key] = json::Object{{"value", value.value}, {"origin", value.origin}};
  }
  json::Object page;
  page["file"] = loaded.file ? json::Value(loaded.file->string()) : json::Value(nullptr);
  page["settings"] = std::move(settings);
  return json::write(page) + "\n";
}

std::string as_table(const server::LoadedSettings& loaded) {
  std::size_t keys = 0;
  std::size_t values = 0;
  const auto shown = [](const server::EffectiveValue& value) {
    return value.value.empty() ? fmt::format("({})", server::find_setting(value.key)->when_empty)
                               : value.value;
  };
  for (const server::EffectiveValue& value : loaded.effective) {
    keys = std::max(keys, value.key.size());
    values = std::max(values, std::min<std::size_t>(shown(value).size(), 40));
  }
  std::string text = fmt::format("file: {}\n\n", loaded.file ? loaded.file->string() : "none");
  for (const server::EffectiveValue& value : loaded.effective) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", value.key, keys, shown(value), values, value.origin);
  }
  return text;
}

}  // namespace

int config(const ConfigCommand& command, const server::LoadedSettings& loaded) {
  if (command.reference) {
    print(server::settings_reference());
  } else {
    print(command.form == Form::json ? as_json(loaded) : as_table(loaded));
  }
  return server::exit_status::kOk;
}

}  // namespace prims::cli

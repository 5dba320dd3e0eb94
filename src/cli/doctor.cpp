#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "json/json.h"
#include "sandbox/sandbox.h"

namespace prims::cli {
namespace {

struct Examination {
  std::vector<sandbox::Finding> findings;
  sandbox::Tier tier = sandbox::Tier::none;
  std::optional<sandbox::Enforcement> enforcement;  // when a sandbox can be made
  std::string reason;                               // when none can
};

Examination examine(const server::Settings& settings) {
  const sandbox::HostOptions options{
      .first_uid = settings.first_uid, .uid_count = settings.uid_count, .minimum = sandbox::Tier::namespaces};
  Examination result{.findings = sandbox::Host::examine(options)};
  const auto host = sandbox::Host::create(options);
  if (!host) {
    result.reason = host.error().message;
    return result;
  }
  result.tier = (*host)->tier();
  result.enforcement = (*host)->enforcement();
  return result;
}

std::string as_json(const Examination& result) {
  json::Array findings;
  for (const sandbox::Finding& finding : result.findings) {
    findings.push_back(json::Object{{"name", finding.name},
                                    {"holds", finding.holds},
                                    {"attempt", finding.attempt},
                                    {"detail", finding.detail},
                                    {"fix", finding.fix}});
  }
  json::Object page;
  page["tier"] = std::string(to_string(result.tier));
  page["findings"] = std::move(findings);
  if (result.enforcement) {
    page["enforcement"] = json::Object{{"memory", result.enforcement->memory},
                                       {"processes", result.enforcement->processes},
                                       {"cpu", result.enforcement->cpu}};
  }
  if (!result.reason.empty()) page["reason"] = result.reason;
  return json::write(page) + "\n";
}

std::string mark(bool holds) {
  if (!wants_colour(STDOUT_FILENO)) return holds ? "yes" : "no ";
  return holds ? "\x1b[32myes\x1b[0m" : "\x1b[31mno \x1b[0m";
}

std::string as_table(const Examination& result) {
  std::size_t width = 0;
  for (const sandbox::Finding& finding : result.findings) width = std::max(width, finding.name.size());
  std::string text;
  for (const sandbox::Finding& finding : result.findings) {
    text += fmt::format("{}  {:<{}}  {}: {}\n", mark(finding.holds), finding.name, width, finding.attempt,
                        finding.detail);
    if (!finding.holds && !finding.fix.empty())
      text += fmt::format("     {:<{}}  fix: {}\n", "", width, finding.fix);
  }
  if (result.enforcement) {
    text += fmt::format("\nisolation: {}\nlimits: memory by {}, processes by {}, CPU time by {}\n",
                        to_string(result.tier), result.enforcement->memory, result.enforcement->processes,
                        result.enforcement->cpu);
  } else {
    text += fmt::format("\nisolation: none\n{}\n", result.reason);
  }
  return text;
}

}  // namespace

int doctor(const DoctorCommand& command, const server::LoadedSettings& loaded) {
  const Examination result = examine(loaded.settings);
  print(command.form == Form::json ? as_json(result) : as_table(result));
  switch (result.tier) {
    case sandbox::Tier::full:
      return 0;
    case sandbox::Tier::namespaces:
      return 1;
    case sandbox::Tier::none:
      break;
  }
  return 2;
}

}  // namespace prims::cli

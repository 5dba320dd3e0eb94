#include "cli/invocation.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "cli/help.h"
#include "server/settings_table.h"

namespace prims::cli {
namespace {

std::unexpected<Error> usage_error(std::string message) {
  return fail(Kind::invalid_input, std::move(message));
}

/// What one command reads. CLI11 fills the members; build() makes the Command.
struct Parsed {
  bool help = false;
  bool json = false;
  bool reference = false;
  std::optional<std::string> config;
  std::optional<std::string> code;
  std::optional<std::string> output;
  std::vector<std::string> requirements;
  std::vector<std::string> positionals;
};

/// What stands after the first "--" is the program's or the server's, never ours.
struct Split {
  std::vector<std::string> own;
  std::vector<std::string> rest;
  bool separated = false;
};

Split split(std::vector<std::string> arguments) {
  Split parts;
  const auto dashes = std::ranges::find(arguments, "--");
  parts.own.assign(arguments.begin(), dashes);
  parts.separated = dashes != arguments.end();
  if (parts.separated) parts.rest.assign(dashes + 1, arguments.end());
  return parts;
}

void add_settings(CLI::App& app, Parsed& parsed) {
  for (const server::Definition& setting : server::settings_table()) {
    if (server::is_switch(setting)) {
      app.add_flag(server::flag_name(setting));
    } else {
      app.add_option(server::flag_name(setting))->expected(1)->take_all();
    }
  }
  app.add_option("--config", parsed.config);
}

std::vector<server::Sources::Flag> given_settings(const CLI::App& app) {
  std::vector<server::Sources::Flag> flags;
  for (const server::Definition& setting : server::settings_table()) {
    const CLI::Option* option = app.get_option_no_throw(server::flag_name(setting));
    if (option == nullptr) continue;
    for (const std::string& value : option->results()) flags.push_back({std::string(setting.key), value});
  }
  return flags;
}

void add_own_options(CLI::App& app, std::string_view command, Parsed& parsed) {
  if (command == "run") {
    app.add_option("-c", parsed.code);
    app.add_option("--with", parsed.requirements)->expected(1)->take_all();
    app.add_option("--output", parsed.output);
  }
  if (command == "config") app.add_flag("--reference", parsed.reference);
  if (command == "run" || command == "call" || command == "doctor" || command == "config") {
    app.add_flag("--json", parsed.json);
  }
  if (command != "call") add_settings(app, parsed);
}

std::string unknown_option(const CLI::App& app, std::string_view command, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
  }
  const std::string name = word.substr(0, word.find('='));
  const auto near = nearest(name, known);
  std::string message = fmt::format("prims {} has no option {}", command, name);
  if (near) message += fmt::format("; did you mean {}?", *near);
  if (command == "run")
    message += fmt::format(" (the program's own arguments follow after --: prims run FILE -- {})", word);
  return message + fmt::format("\nprims {} --help lists the options", command);
}

Result<Command> build_run(Parsed parsed, std::vector<std::string> rest) {
  RunCommand run{.code = std::move(parsed.code),
                 .requirements = std::move(parsed.requirements),
                 .arguments = std::move(rest)};
  const std::size_t wanted = run.code ? 0 : 1;
  if (parsed.positionals.size() < wanted) {
    return usage_error("prims run needs a FILE, - for standard input, or -c CODE");
  }
  if (parsed.positionals.size() > wanted) {
    return usage_error(fmt::format(
        "prims run does not expect '{0}' here; the program's own arguments follow after --: prims "
        "run FILE -- {0}",
        parsed.positionals[wanted]));
  }
  if (wanted == 1) run.file = std::move(parsed.positionals[0]);
  if (parsed.output) run.output = *parsed.output;
  run.form = parsed.json ? Form::json : Form::text;
  return run;
}

Result<Command> build_call(Parsed parsed, Split parts) {
  CallCommand call{.form = parsed.json ? Form::json : Form::text};
  std::vector<std::string> words = std::move(parsed.positionals);
  if (parts.separated) {
    // A second "--" ends the server's command line.
    Split command = split(std::move(parts.rest));
    call.command = std::move(command.own);
    if (call.command.empty()) return usage_error("prims call needs a command after --");
    words.insert(words.end(), command.rest.begin(), command.rest.end());
  } else {
    if (words.empty()) return usage_error("prims call needs a URL, or -- and a command that starts a server");
    if (!words[0].starts_with("http://") && !words[0].starts_with("https://")) {
      return usage_error(fmt::format(
          "'{}' is not an http:// or https:// URL; a server is started with: prims call -- COMMAND",
          words[0]));
    }
    call.url = std::move(words[0]);
    words.erase(words.begin());
  }
  if (words.size() > 2) return usage_error(fmt::format("prims call does not expect '{}' here", words[2]));
  if (!words.empty()) call.tool = std::move(words[0]);
  if (words.size() == 2) call.arguments = std::move(words[1]);
  return call;
}

Result<Command> build(std::string_view command, Parsed parsed, Split parts) {
  if (parsed.help) return PrintText{command_help(command)};
  if (command == "run") return build_run(std::move(parsed), std::move(parts.rest));
  if (command == "call") return build_call(std::move(parsed), std::move(parts));
  if (parts.separated || !parsed.positionals.empty()) {
    const std::string word = parsed.positionals.empty() ? "--" : parsed.positionals[0];
    return usage_error(fmt::format("prims {} does not expect '{}'", command, word));
  }
  const Form form = parsed.json ? Form::json : Form::text;
  if (command == "serve") return ServeCommand{};
  if (command == "stdio") return StdioCommand{};
  if (command == "doctor") return DoctorCommand{.form = form};
  return ConfigCommand{.reference = parsed.reference, .form = form};
}

Result<Invocation> parse_command(const std::string& command, Split parts) {
  Parsed parsed;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", parsed.help);
  app.allow_extras();
  add_own_options(app, command, parsed);
  std::vector<std::string> reversed(parts.own.rbegin(), parts.own.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return usage_error(fmt::format("prims {}: {}", command, error.what()));
  }
  for (std::string& word : app.remaining()) {
    if (word.size() > 1 && word.starts_with('-')) return usage_error(unknown_option(app, command, word));
    parsed.positionals.push_back(std::move(word));
  }
  Invocation invocation;
  invocation.flags = given_settings(app);
  if (parsed.config) invocation.config = *parsed.config;
  PRIMS_ASSIGN_OR_RETURN(invocation.command, build(command, std::move(parsed), std::move(parts)));
  return invocation;
}

std::unexpected<Error> unknown_command(const std::string& word) {
  const std::vector<std::string> commands = command_names();
  const auto near = nearest(word, commands);
  return usage_error(fmt::format("prims has no command {}{}\nprims --help lists the commands", word,
                                 near ? fmt::format("; did you mean {}?", *near) : ""));
}

// An option of a command in front of it, or none of ours.
std::unexpected<Error> misplaced_option(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known = {"--help", "--version", "--config"};
  for (const server::Definition& setting : server::settings_table())
    known.push_back(server::flag_name(setting));
  if (std::ranges::find(known, name) != known.end()) {
    return usage_error(
        fmt::format("options follow the command: prims COMMAND {}\nprims --help lists the commands", word));
  }
  const auto near = nearest(name, known);
  return usage_error(
      fmt::format("prims has no option {}{}\nprims --help lists the commands; options follow the command",
                  name, near ? fmt::format("; did you mean {}?", *near) : ""));
}

bool is_command(const std::string& word) {
  const std::vector<std::string> commands = command_names();
  return std::ranges::find(commands, word) != commands.end();
}

}  // namespace

Result<Invocation> parse_arguments(std::vector<std::string> arguments) {
  if (arguments.empty()) return usage_error("a command is needed\n\n" + program_help());
  const std::string first = std::move(arguments.front());
  arguments.erase(arguments.begin());
  if (first == "--version") return Invocation{.command = PrintText{fmt::format("prims {}\n", kVersion)}};
  if (first == "-h" || first == "--help" || first == "help") {
    if (arguments.empty()) return Invocation{.command = PrintText{program_help()}};
    if (!is_command(arguments.front())) return unknown_command(arguments.front());
    return Invocation{.command = PrintText{command_help(arguments.front())}};
  }
  if (first.starts_with('-')) return misplaced_option(first);
  if (!is_command(first)) return unknown_command(first);
  return parse_command(first, split(std::move(arguments)));
}

}  // namespace prims::cli

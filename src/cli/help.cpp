#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/settings_table.h"

namespace prims::cli {
namespace {

struct Page {
  std::string_view command;
  std::string_view summary;
  std::string_view text;                        // usage, examples, own options
  std::array<std::string_view, 5> groups = {};  // of settings that matter here
};

constexpr std::array kPages = {
    Page{"serve",
         "serve MCP over HTTP",
         R"help(Usage: prims serve [OPTION...]

Examples:
  prims serve                          http://localhost:9000/mcp until Ctrl-C or SIGTERM
  prims serve --port 0                 any free port; the address is printed when ready
  prims serve --memory 4GiB --timeout 5m

Serves on 127.0.0.1 and ::1. GET /healthz answers while the server is up. SIGTERM lets running calls
end; a second one ends at once.
)help",
         {"Serving", "This process", "Sandbox", "Python and packages", "Limits of one run"}},
    Page{"stdio",
         "serve one MCP client on standard input and output",
         R"help(Usage: prims stdio [OPTION...]

Examples:
  prims stdio                          what an MCP client starts as its command
  prims stdio --config ~/prims.toml    clients pass almost no environment; a file holds what is needed

Nothing is created on disk before the first tool call. The end of standard input ends the program.
)help",
         {"This process", "Sandbox", "Python and packages", "Limits of one run"}},
    Page{"run",
         "run a Python program in a sandbox, without a server",
         R"help(Usage: prims run [OPTION...] FILE [-- ARGUMENT...]
       prims run [OPTION...] - [-- ARGUMENT...]
       prims run [OPTION...] -c CODE [-- ARGUMENT...]

Examples:
  prims run script.py
  prims run --with scikit-learn --timeout 2m train.py -- --epochs 3
  prims run -c 'import sys; print(sys.stdin.read().upper())' < notes.txt
  prims run --output results plot.py   copies what the program wrote to output/
  prims run --json script.py           the object that the MCP tool returns

Standard input, output and error are the program's own; with - its input is empty. Exit status: the
program's; 124 timeout, 125 no sandbox, 130 interrupted, 137 memory, 153 disk or output, 128 + n for
signal n, 2 for a mistake on the command line.

Options:
  -c CODE                            the program itself
  --with PACKAGE                     a package to install, as pip names it; may be repeated
  --output DIR                       copy the files of output/ here afterwards
  --json                             print one JSON object instead of the program's output
)help",
         {"Limits of one run", "Python and packages", "Sandbox", "This process"}},
    Page{"call", "list or call the tools of any MCP server",
         R"help(Usage: prims call [OPTION...] URL [TOOL [JSON]]
       prims call [OPTION...] [TOOL [JSON]] -- COMMAND [ARGUMENT...]
       prims call [OPTION...] -- COMMAND [ARGUMENT...] -- [TOOL [JSON]]

Examples:
  prims call http://localhost:9000/mcp
  prims call http://localhost:9000/mcp run_code '{"code": "print(6 * 7)"}'
  prims call run_code '{"code": "1 + 1"}' -- prims stdio

Speaks both eras of the protocol. Progress goes to standard error as it comes. JSON may be "-" for
standard input. Exit status: 0, 1 when the tool or the server reports an error, 2 for a mistake on the
command line.

Options:
  --json                             print the server's answer as one JSON object
)help"},
    Page{"doctor",
         "try which isolation this host gives",
         R"help(Usage: prims doctor [OPTION...]

Examples:
  prims doctor
  prims doctor --json

Every line is an attempt made just now. Exit status: 0 full isolation, 1 weaker, 2 no sandbox can be made.

Options:
  --json                             print one JSON object
)help",
         {"Sandbox", "This process"}},
    Page{"config", "show the settings that hold and where each came from",
         R"help(Usage: prims config [OPTION...]

Examples:
  prims config
  prims config --config prims.toml     checks a file
  prims config --json
  prims config --reference             every setting with its names, default and range, as Markdown

Every setting may be given as a flag here, as with `prims serve`.

Options:
  --json                             print one JSON object
  --reference                        print the reference of all settings
)help"},
};

std::string setting_lines(std::string_view group) {
  std::string text = fmt::format("\n{}:\n", group);
  const server::Settings defaults;
  for (const server::Definition& setting : server::settings_table()) {
    if (setting.group != group) continue;
    const std::string value = server::show(defaults, setting);
    const std::string names = fmt::format("{} {}", server::flag_name(setting), server::value_name(setting));
    text += fmt::format("  {:<34} {} [{}]\n", names, setting.help,
                        value.empty() ? std::string(setting.when_empty) : value);
  }
  return text;
}

constexpr std::string_view kCommon =
    "\nEverywhere:\n"
    "  --config FILE                      read settings from this file\n"
    "  -h, --help                         print this\n";

}  // namespace

std::string program_help() {
  std::string text =
      "prims runs Python programs for MCP clients, each in a throw-away sandbox.\n\n"
      "Examples:\n"
      "  prims serve                          serve http://localhost:9000/mcp\n"
      "  prims run script.py                  run a program, no server needed\n"
      "  prims run --with pandas -c 'import pandas; print(pandas.__version__)'\n"
      "  prims call http://localhost:9000/mcp list the tools of an MCP server\n\n"
      "Commands:\n";
  for (const Page& page : kPages) text += fmt::format("  {:<8} {}\n", page.command, page.summary);
  text +=
      "\nOptions:\n"
      "  -h, --help     print this, or the help of a command: prims run --help\n"
      "  --version      print the version\n\n"
      "Settings come from flags, variables (PRIMS_*) and a file; `prims config` shows them all.\n";
  return text;
}

std::string command_help(std::string_view command) {
  const auto* page = std::ranges::find(kPages, command, &Page::command);
  if (page == kPages.end()) return program_help();
  std::string text = fmt::format("prims {}: {}\n\n{}", page->command, page->summary, page->text);
  for (const std::string_view group : page->groups) {
    if (!group.empty()) text += setting_lines(group);
  }
  text += kCommon;
  return text;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Page& page : kPages) names.emplace_back(page.command);
  return names;
}

}  // namespace prims::cli

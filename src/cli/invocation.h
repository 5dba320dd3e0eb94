// The command line as data: which command, with what, and which settings its flags name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "server/settings.h"

namespace prims::cli {

enum class Form { text, json };

/// Prints a text on standard output and nothing else.
struct PrintText {
  std::string text;
};

struct ServeCommand {};
struct StdioCommand {};

struct RunCommand {
  std::optional<std::string> code;  ///< of -c
  std::string file;                 ///< without -c; "-" is standard input
  std::vector<std::string> requirements;
  std::optional<std::filesystem::path> output;
  std::vector<std::string> arguments;
  Form form = Form::text;
};

struct CallCommand {
  std::optional<std::string> url;
  std::vector<std::string> command;  ///< without a URL: a server to start
  std::optional<std::string> tool;   ///< none: list them
  std::string arguments = "{}";      ///< JSON; "-" is standard input
  Form form = Form::text;
};

struct DoctorCommand {
  Form form = Form::text;
};

struct ConfigCommand {
  bool reference = false;
  Form form = Form::text;
};

using Command = std::variant<PrintText, ServeCommand, StdioCommand, RunCommand, CallCommand, DoctorCommand,
                             ConfigCommand>;

struct Invocation {
  Command command;
  std::vector<server::Sources::Flag> flags;
  std::optional<std::filesystem::path> config;
};

/// `arguments` without the program's name. An Error says what is wrong and what to write instead.
Result<Invocation> parse_arguments(std::vector<std::string> arguments);

}  // namespace prims::cli

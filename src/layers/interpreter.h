// Finds the CPython that runs guests, by running candidates and asking them.
//
// A shim, a symlink or a virtual environment leads to the interpreter behind it, so what is found works
// without the shim's tool and without the environment. Only the directories that CPython itself needs are
// named, never a whole home directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "layers/store.h"

namespace prims::layers {

struct InterpreterSearch {
  std::string choice;  ///< a path, a version ("3.11", "3.11.7", "python3.11") or a program name; empty: the
                       ///< first that fits of `path`, the per-user installations and /usr/bin
  std::string path;    ///< PATH
  std::string home;    ///< HOME; where per-user installations are looked for. May be empty
  std::string pyenv_root;  ///< PYENV_ROOT; empty: home/.pyenv
};

/// The search settings of this process's environment.
InterpreterSearch search_from_environment(std::string choice);

/// CPython 3.9 to 3.14. The Error names what was tried and what each attempt gave.
Result<Interpreter> find_interpreter(const InterpreterSearch& search);

/// What is left of `directories` when those inside another one, or inside /usr, are dropped. Exposed for its
/// test.
std::vector<std::string> outermost(std::vector<std::string> directories);

}  // namespace prims::layers

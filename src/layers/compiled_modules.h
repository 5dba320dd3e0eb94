// Compiled modules, kept for the next layer with the same sources.
//
//   compiled/KEY/NUMBER  the compiled form of one module of a group; none when it does not compile
//   compiled/KEY/size    the bytes of all of them together
//
// A group is what one entry of site-packages contains. Its key covers the interpreter and the path and
// content of every module in it, and whoever compiles a group sees nothing that another group will use. So
// what is kept can only ever serve the sources that it was made of. Layers hold it by hard links.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "layers/store.h"

namespace prims::layers {

struct ModuleGroup {
  std::string key;                   ///< empty: nothing of it is kept
  std::vector<std::string> modules;  ///< below site-packages; the place in this list is a module's number
  Bytes source;                      ///< of all modules
};

/// On one layer that is being made and that no other process touches. All of it blocks.
class CompiledModules {
 public:
  /// `kept` is the directory with all groups; `environment` is a finished installation.
  CompiledModules(std::filesystem::path kept, const std::filesystem::path& environment,
                  Interpreter interpreter);

  /// All modules of the environment but tests of packages (test_*.py below a directory `tests`).
  Result<std::vector<ModuleGroup>> survey() const;

  /// Gives the environment the compiled modules of a group that are kept already. False: they are not.
  bool take(const ModuleGroup& group) const;

  /// Gives it those that a compilation left in `made`, and keeps them if all of them are there. What an
  /// untrusted program left in that directory besides is removed.
  enum class Made { all, some };
  Result<> place(const ModuleGroup& group, const std::filesystem::path& made, Made how_many) const;

 private:
  Result<> link(const ModuleGroup& group, const std::filesystem::path& from) const;
  std::filesystem::path compiled_path(const std::string& module) const;

  std::filesystem::path kept_;
  std::filesystem::path packages_;
  Interpreter interpreter_;
};

/// Removes the groups that were not used for longest until the others fit. `builds` is where they are
/// emptied.
void collect_compiled(const std::filesystem::path& kept, const std::filesystem::path& builds, Bytes limit);

}  // namespace prims::layers

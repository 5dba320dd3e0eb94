// Compiles the modules of an installation that no earlier layer has compiled.
//
// A compiler reads what anybody may have written, so it is not trusted either: each group of modules is
// compiled in a sandbox of its own that can change nothing but the list of its own results.
#pragma once

#include <filesystem>
#include <memory>

#include "base/deadline.h"
#include "io/workers.h"
#include "layers/compiled_modules.h"
#include "layers/store.h"
#include "layers/workshop.h"

namespace prims::layers {

class ModuleCompiler {
 public:
  /// `state` holds compiled/. The references must outlive this object, and that its Tasks.
  ModuleCompiler(std::filesystem::path state, Interpreter interpreter, Workshop& workshop,
                 io::Workers& workers);

  /// Compiles `build`/env without running any of its modules. What could not be compiled is compiled at each
  /// import instead: slower, not wrong.
  io::Task<Result<>> compile(std::filesystem::path build, Progress progress, Deadline deadline);

 private:
  struct Work;

  io::Task<> work_off(std::shared_ptr<Work> work);
  io::Task<Result<>> compile_group(std::shared_ptr<Work> work, ModuleGroup group);
  sandbox::FileEntry list_of(const ModuleGroup& group) const;

  std::filesystem::path state_;
  Interpreter interpreter_;
  Workshop& workshop_;
  io::Workers& workers_;
};

}  // namespace prims::layers

// Resolves requirements and fills virtual environments, each step in a sandbox of its own.
//
// uv's shared cache is trusted: only uv itself, without building anything, ever writes to it. When a package
// has to be built from source, its build code runs, so that step gets a cache of its own that is thrown away.
// Modules are compiled without running any of them, and code of a finished environment runs only with that
// environment read-only.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "io/workers.h"
#include "layers/build_directory.h"
#include "layers/diagnosis.h"
#include "layers/index_settings.h"
#include "layers/module_compiler.h"
#include "layers/tree.h"
#include "layers/workshop.h"

namespace prims::layers {

struct Locked {
  std::string lock;          ///< requirements-file text with hashes
  bool needs_build = false;  ///< some package has no wheel
};

/// Empties uv's shared cache when it has grown beyond `limit` and no process uses it. Blocks.
void collect_cache(const std::filesystem::path& state, Bytes limit);

class Installer {
 public:
  /// `state` holds uv-cache/ and builds/. The references must outlive this object.
  Installer(std::filesystem::path state, Interpreter interpreter, Workshop& workshop, io::Workers& workers);

  /// The package index that uv uses by itself.
  io::Task<Result<std::string>> default_index(std::vector<sandbox::FileEntry> uv_files, Deadline deadline);

  /// Exact versions for `requirements` (one a line). Wheels are preferred; only when there is no solution of
  /// wheels alone are packages built to learn what they depend on.
  io::Task<Result<std::variant<Locked, Diagnosis>>> resolve(std::string requirements,
                                                            std::vector<std::string> indexes,
                                                            Deadline deadline);

  /// Fills `build`/env from a lock: a finished tree, ready to publish. Returns its size.
  io::Task<Result<std::variant<TreeSize, Diagnosis>>> install(std::filesystem::path build, Locked locked,
                                                              std::vector<std::string> indexes,
                                                              Progress progress, Deadline deadline);

 private:
  enum class Build { never, when_needed };

  io::Task<Result<std::variant<Locked, Diagnosis>>> compile(std::string requirements,
                                                            std::vector<std::string> indexes, Build build,
                                                            Deadline deadline);
  io::Task<Result<std::optional<Diagnosis>>> unpack(std::filesystem::path build, Locked locked,
                                                    std::vector<std::string> indexes, Deadline deadline);
  io::Task<Result<>> prepare_fonts(std::filesystem::path build, Deadline deadline);
  Diagnosis explain(const JobResult& result) const;

  std::filesystem::path state_;
  Interpreter interpreter_;
  Workshop& workshop_;
  io::Workers& workers_;
  ModuleCompiler compiler_;
};

}  // namespace prims::layers

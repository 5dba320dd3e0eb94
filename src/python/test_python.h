// For tests that run programs: an interpreter of this machine with a layer of its own.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/random.h"
#include "layers/interpreter.h"
#include "python/runner.h"

namespace prims::python::testing_support {

class TempDir {
 public:
  TempDir() : path_(std::filesystem::temp_directory_path() / ("prims-" + random_token())) {
    std::filesystem::create_directory(path_);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A temporary directory for a sandbox of `host`, and the runner's way to new ones.
inline io::Task<Result<Workspace>> make_workspace(uid_t owner) {
  auto directory = std::make_shared<TempDir>();
  const std::string path = directory->path().string();
  if (::geteuid() == 0 && ::chown(path.c_str(), owner, owner) != 0) co_return fail_errno("chown");
  PRIMS_CO_ASSIGN_OR_RETURN(EmptyTree made, EmptyTree::of({path}));
  co_return Workspace{path, std::make_shared<const EmptyTree>(std::move(made)), std::move(directory)};
}
inline WorkspaceSource temporary_workspaces(const sandbox::Host& host) {
  return [owner = host.workspace_owner()] { return make_workspace(owner); };
}

/// One Python with a virtual environment of its own as the layer.
struct Python {
  layers::Interpreter interpreter;
  TempDir layer;
};

inline std::unique_ptr<Python> make_python(const std::string& choice) {
  auto found = layers::find_interpreter(layers::search_from_environment(choice));
  if (!found) return nullptr;
  auto python = std::make_unique<Python>();
  python->interpreter = *std::move(found);
  const std::string command = fmt::format("'{}' -Im venv --without-pip '{}'", python->interpreter.executable,
                                          python->layer.path().string());
  return std::system(command.c_str()) == 0 ? std::move(python) : nullptr;
}

}  // namespace prims::python::testing_support

// For tests that run programs: an interpreter of this machine with a layer of its own.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/random.h"
#include "layers/interpreter.h"

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

// Package layers: read-only virtual environments, built once, shared by every run.
//
// A layer is a directory of the state directory that holds a complete virtual environment as it appears inside a sandbox at
// kEnvironmentPath (bin/python, lib/pythonX.Y/site-packages, pyvenv.cfg, compiled modules). Its name is the hash of its lock
// (exact versions with hashes), the interpreter and the layer format. uv resolves and installs inside a sandbox of its own
// whose only way out is the egress broker.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/task.h"
#include "sandbox/sandbox.h"

namespace prims::layers {

inline constexpr const char* kEnvironmentPath = "/env";

/// A CPython that runs guests. Found by running it, so every field is what it says of itself.
struct Interpreter {
  std::string executable;                ///< real path on the host
  std::string version;                   ///< "3.11.7"
  std::string key;                       ///< names it in layer hashes: implementation, version, ABI, prefix, platform
  std::vector<std::string> directories;  ///< host directories that must be bound, at the same path, for it to run
};

struct Layer {
  std::string lock;                   ///< hash, also the directory's name
  std::filesystem::path directory;    ///< becomes an Attachment at kEnvironmentPath
  std::vector<std::string> packages;  ///< "numpy==2.4.6", sorted
};

/// Why a layer could not be made, for a `dependency_error` result.
struct DependencyError {
  std::string message;  ///< one sentence
  std::string hint;     ///< the exact next thing to do
  std::string log;      ///< the tool's own last lines
};

struct Request {
  std::vector<std::string> requirements;  ///< PEP 508, as given
  bool with_base = true;                  ///< the base packages too, unless they conflict (the user's wish wins)
};

/// Called with a short sentence while a layer is built ("resolving 6 packages", "installing pandas"). May be empty.
using Progress = std::function<void(const std::string&)>;

using Outcome = std::variant<Layer, DependencyError>;

class Store {
 public:
  virtual ~Store() = default;

  /// The layer for a request: found, or built now. Identical concurrent requests, also of other processes on the same state
  /// directory, build once. A half-built layer is never returned.
  virtual io::Task<Result<Outcome>> get(Request request, Progress progress) = 0;

  /// The layer for a request if it is there already; costs no network and no process.
  virtual std::optional<Layer> find(const Request& request) = 0;

  /// The layer without any package: the plain interpreter as a virtual environment. Local, quick, no network.
  virtual io::Task<Result<Layer>> plain() = 0;

  virtual const Interpreter& interpreter() const = 0;
};

}  // namespace prims::layers

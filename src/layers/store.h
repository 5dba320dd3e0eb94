// Package layers: read-only virtual environments, built once, shared by every run.
//
// A layer is a directory of the state directory that holds a complete virtual environment as it appears
// inside a sandbox at kEnvironmentPath (bin/python, lib/pythonX.Y/site-packages, pyvenv.cfg, compiled
// modules). Its name is the hash of its lock (exact versions with hashes), the interpreter and the layer
// format. uv resolves and installs inside a sandbox of its own whose only way out is the egress broker.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "io/task.h"
#include "sandbox/sandbox.h"

namespace prims::io {
class Workers;
}

namespace prims::layers {

inline constexpr const char* kEnvironmentPath = "/env";

/// A CPython that runs guests. Found by running it, so every field is what it says of itself.
struct Interpreter {
  std::string executable;  ///< real path on the host
  std::string version;     ///< "3.11.7"
  std::string key;         ///< names it in layer hashes: implementation, version, ABI, prefix, platform
  std::string cache_tag;   ///< in the names of its compiled modules: "cpython-311"
  std::vector<std::string>
      directories;  ///< host directories (or files) to bind, at the same path, for it to run; not /usr
  std::vector<std::string> standard_library;  ///< its top-level modules, sorted
};

/// Keeps a layer from being collected while a copy of it exists.
using Lease = std::shared_ptr<const void>;

struct Layer {
  std::string lock;                   ///< hash that names the layer
  std::filesystem::path directory;    ///< becomes an Attachment at kEnvironmentPath
  std::vector<std::string> packages;  ///< "numpy==2.4.6", sorted
  std::vector<std::string>
      notes;    ///< sentences for the caller: "json and os belong to the standard library ..."
  Lease lease;  ///< hold the Layer for as long as a sandbox has it attached
};

/// Why a layer could not be made, for a `dependency_error` result.
struct DependencyError {
  std::string message;  ///< one sentence
  std::string hint;     ///< the exact next thing to do
  std::string log;      ///< the tool's own last lines; may be empty
};

/// Whether the base packages come along, unless they conflict (the user's wish wins).
enum class Base { with, without };

struct Request {
  std::vector<std::string> requirements;  ///< PEP 508, as given
  Base base = Base::with;
};

/// Called with a short sentence while a layer is built ("resolving 6 packages", "installing pandas"). May be
/// empty.
using Progress = std::function<void(const std::string&)>;

using Outcome = std::variant<Layer, DependencyError>;

struct StoreOptions {
  std::filesystem::path state;  ///< state directory; made when missing
  Interpreter interpreter;      ///< find_interpreter() of layers/interpreter.h
  std::string index_url;        ///< package index; empty: what uv itself is set to or has as default
  std::vector<std::string>
      extra_index_urls;  ///< asked first, in this order; the first index that has a package wins
  std::vector<std::string> base = {"numpy", "pandas", "openpyxl", "requests", "matplotlib"};
  Bytes size_limit = gib(20);  ///< all layers together; the least recently used are removed beyond it
  Milliseconds install_timeout{600'000};       ///< for making one layer
  std::chrono::hours resolution_lifetime{24};  ///< how long a resolution is reused without asking the index
  std::filesystem::path
      program_directory;  ///< where the program lies, for a uv wheel beside it; may be empty
};

class Store {
 public:
  virtual ~Store() = default;

  /// Makes what is missing of the state directory. Starts no process and needs no network. `host` and
  /// `workers` must outlive the store, and the loop's Tasks that use it.
  static Result<std::unique_ptr<Store>> create(StoreOptions options, sandbox::Host& host,
                                               io::Workers& workers);

  /// The layer for a request: found, or built now. Identical concurrent requests, also of other processes on
  /// the same state directory, build once. A half-built layer is never returned.
  virtual io::Task<Result<Outcome>> get(Request request, Progress progress) = 0;

  /// The layer for a request if it is there already; costs no network and no process.
  virtual std::optional<Layer> find(const Request& request) = 0;

  /// The layer without any package: the plain interpreter as a virtual environment. Local, quick, no network.
  virtual io::Task<Result<Layer>> plain() = 0;

  /// Gives up what is being made and waits until it has ended, at most until the deadline. A layer that is
  /// half made is left for the next sweep. Before the store goes.
  virtual io::Task<Result<>> stop(Deadline deadline) = 0;

  virtual const Interpreter& interpreter() const = 0;
};

}  // namespace prims::layers

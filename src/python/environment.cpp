#include "python/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "guest/files.h"
#include "json/json.h"
#include "sandbox/root.h"

namespace prims::python {
namespace {

constexpr std::string_view kDriverDirectory = "/opt/prims";
/// A template imports until it holds so many times what is expected, and never holds much more.
constexpr std::uint64_t kRoomForImports = 2;
constexpr Bytes kImportPeak = mib(256);

bool lies_in(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

/// Interpreters outside of what every sandbox has; Debian's lies in /usr and needs nothing.
void bind_interpreter(sandbox::Root& root, const layers::Interpreter& interpreter) {
  for (const std::string& directory : interpreter.directories) {
    const bool there = std::ranges::any_of(root.binds, [&](const sandbox::BindMount& bind) {
      return bind.source == bind.target && lies_in(directory, bind.target);
    });
    if (!there) root.binds.push_back({directory, directory, sandbox::Access::read_only});
  }
}

std::uint32_t processors(const sandbox::Limits& limits) {
  const std::uint32_t all = std::max(std::thread::hardware_concurrency(), 1U);
  return limits.cpus == 0 ? all : std::min(limits.cpus, all);
}

}  // namespace

sandbox::PrepareSpec prepare_spec(const layers::Interpreter& interpreter, const RunLimits& limits) {
  sandbox::PrepareSpec spec;
  spec.root = sandbox::minimal_root(spec.hostname, {.tmp = limits.tmp, .shared_memory = limits.shm});
  bind_interpreter(spec.root, interpreter);
  spec.root.directories.emplace_back(kDriverDirectory);  // named, so that Python may list it
  for (const guest::File& file : guest::files()) {
    spec.root.files.push_back({fmt::format("{}/{}", kDriverDirectory, file.name), std::string(file.content)});
  }
  spec.limits = limits.sandbox;
  return spec;
}

sandbox::Attachment workspace_attachment(const Workspace& workspace) {
  return {workspace.directory, kWorkspacePath, sandbox::Access::read_write, workspace.made};
}

sandbox::Attachment layer_attachment(const layers::Layer& layer) {
  return {layer.directory.string(), layers::kEnvironmentPath, sandbox::Access::read_only};
}

sandbox::StartSpec start_spec(const sandbox::Limits& limits, const sandbox::Enforcement& enforcement) {
  const std::string environment = layers::kEnvironmentPath;
  const std::uint32_t threads = processors(limits);
  sandbox::StartSpec spec;
  spec.argv = {environment + "/bin/python",
               fmt::format("{}/{}", kDriverDirectory, guest::files().front().name)};
  spec.directory = kWorkspacePath;
  spec.environment = {
      fmt::format("PATH={}/bin:/usr/local/bin:/usr/bin:/bin", environment),
      fmt::format("HOME={}", sandbox::kHome),
      fmt::format("USER={}", sandbox::kUserName),
      fmt::format("LOGNAME={}", sandbox::kUserName),
      "LANG=C.UTF-8",
      fmt::format("VIRTUAL_ENV={}", environment),
      // Python programs that the program starts write through as it does, and leave no bytecode that goes
      // stale.
      "PYTHONUNBUFFERED=1",
      "PYTHONDONTWRITEBYTECODE=1",
      "MPLBACKEND=Agg",
      // Linear algebra starts a thread for each processor of the host unless told.
      fmt::format("OPENBLAS_NUM_THREADS={}", threads),
      fmt::format("OMP_NUM_THREADS={}", threads),
      fmt::format("MKL_NUM_THREADS={}", threads),
  };
  // Address space is what such limits count, and each arena of malloc reserves 64 MiB of it.
  if (enforcement.memory.starts_with("rlimit")) spec.environment.emplace_back("MALLOC_ARENA_MAX=2");
  return spec;
}

sandbox::TemplateSpec template_spec(const layers::Interpreter& interpreter, const layers::Layer& layer,
                                    const RunLimits& limits, const sandbox::Enforcement& enforcement,
                                    const Ahead& ahead) {
  json::Object argument;
  json::Array& imports = argument["imports"].emplace_array();
  for (const std::string& module : ahead.modules) imports.emplace_back(module);
  argument["memory"] = kRoomForImports * ahead.memory.count;
  argument["file"] = kProgramFile;
  argument["workspace"] = kWorkspacePath;

  sandbox::TemplateSpec spec;
  spec.prepare = prepare_spec(interpreter, limits);
  spec.limits = limits.sandbox;
  spec.limits.memory.count = kRoomForImports * ahead.memory.count + kImportPeak.count;
  spec.limits.cpu_time = Milliseconds{0};
  spec.attachments.push_back(layer_attachment(layer));
  spec.start = start_spec(limits.sandbox, enforcement);
  spec.start.argv.emplace_back("template");
  spec.start.argv.push_back(json::write(argument));
  spec.start.directory = "/";  // the workspace of a fork comes later, over the place where it would be
  return spec;
}

}  // namespace prims::python

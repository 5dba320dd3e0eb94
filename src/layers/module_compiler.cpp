#include "layers/module_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "io/scope.h"
#include "io/wait.h"
#include "layers/tree.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "/opt/job/compile.py";
constexpr const char* kModules = "/opt/job/modules.txt";
constexpr const char* kCompiling = "compiling modules";
constexpr auto kProgressPause = std::chrono::seconds(4);
constexpr Milliseconds kPatience{50};
/// A process has 30 to 60 MiB, and a sandbox 4 GiB for all of them.
constexpr std::uint64_t kMostProcesses = 16;
constexpr Bytes kSourcePerProcess = kib(256);
constexpr unsigned kLeastSandboxes = 2;
constexpr unsigned kMostSandboxes = 4;
/// Below that a sandbox costs as much as compiling: such groups share one, and none of them is kept.
constexpr Bytes kSmall = kib(128);

/// glibc hands memory back to the kernel after each module and asks for it again for the next one otherwise.
constexpr std::array kMemoryIsKept = {"MALLOC_TRIM_THRESHOLD_=1073741824",
                                      "MALLOC_MMAP_THRESHOLD_=1073741824", "MALLOC_TOP_PAD_=33554432"};

// Runs in the base interpreter without `site`, so no .pth file or module of the environment takes part.
// Nobody changes a layer, so the modules are never compared with their sources. Processes take the next
// module from a file whose position they share; one that a module has crashed is replaced.
constexpr const char* kCompile = R"(
import gc, importlib.util, marshal, os, sys

HEADER = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")  # by hash, unchecked
processes, listing, target = int(sys.argv[1]), sys.argv[2], sys.argv[3]
with open(listing, "rb") as file:
    modules = file.read().split(b"\n")[:-1]

def compiled(path):
    with open(path, "rb") as file:
        source = file.read()
    try:
        code = compile(source, os.fsdecode(path), "exec", dont_inherit=True)
    except Exception:  # of another version of Python, or a template: left as it is
        return None
    return HEADER + importlib.util.source_hash(source) + marshal.dumps(code)

def work(numbers):
    part = os.path.join(target, "part-%d" % os.getpid())
    while True:
        number = os.read(numbers, 4)
        if not number:
            return
        number = int.from_bytes(number, "little")
        data = compiled(modules[number])
        if data is not None:
            with open(part, "wb") as file:
                file.write(data)
            os.rename(part, os.path.join(target, str(number)))

def start(numbers):
    if os.fork() == 0:
        code = 1
        try:
            work(numbers)
            code = 0
        finally:
            os._exit(code)

gc.disable()
with open("/tmp/queue", "x+b", buffering=0) as queue:
    order = sorted(range(len(modules)), key=lambda number: -os.stat(modules[number]).st_size)
    queue.write(b"".join(number.to_bytes(4, "little") for number in order))
    queue.seek(0)
    for _ in range(processes):
        start(queue.fileno())
    left, failed = processes, 0
    while left:
        status = os.wait()[1]
        if os.WIFSIGNALED(status):
            start(queue.fileno())
        else:
            left -= 1
            failed |= os.WEXITSTATUS(status)
sys.exit(failed)
)";

unsigned cores() {
  return std::max(1U, std::thread::hardware_concurrency());
}

std::uint64_t processes_for(const ModuleGroup& group) {
  const auto wanted = group.source.count / kSourcePerProcess.count + 1;
  return std::min({wanted, kMostProcesses, std::uint64_t{cores()}});
}

/// Largest first, small ones as one.
std::deque<ModuleGroup> in_order(std::vector<ModuleGroup> groups) {
  ModuleGroup small;
  std::deque<ModuleGroup> order;
  for (auto& group : groups) {
    if (group.source >= kSmall) {
      order.push_back(std::move(group));
      continue;
    }
    std::ranges::move(group.modules, std::back_inserter(small.modules));
    small.source.count += group.source.count;
  }
  if (!small.modules.empty()) order.push_back(std::move(small));
  std::ranges::sort(order, std::ranges::greater(), &ModuleGroup::source);
  return order;
}

/// Says every few seconds that the work goes on, until it is asked to end.
io::Task<> keep_saying(Progress progress, std::string what) {
  const auto begin = Clock::now();
  while (true) {
    auto slept = co_await io::sleep_until(Deadline::after(kProgressPause));
    if (!slept) co_return;
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin);
    if (progress) progress(fmt::format("{} ({} s so far)", what, passed.count()));
  }
}

}  // namespace

/// What is left to do for one layer, shared by the Tasks that do it.
struct ModuleCompiler::Work {
  fs::path build;
  CompiledModules modules;
  Deadline deadline;
  std::deque<ModuleGroup> groups;
  std::size_t begun = 0;
  Result<> result;
};

ModuleCompiler::ModuleCompiler(fs::path state, Interpreter interpreter, Workshop& workshop,
                               io::Workers& workers)
    : state_(std::move(state)),
      interpreter_(std::move(interpreter)),
      workshop_(workshop),
      workers_(workers) {}

io::Task<Result<>> ModuleCompiler::compile(fs::path build, Progress progress, Deadline deadline) {
  CompiledModules modules(state_ / "compiled", build / "env", interpreter_);
  auto take = [modules]() -> Result<std::vector<ModuleGroup>> {
    PRIMS_ASSIGN_OR_RETURN(auto groups, modules.survey());
    std::erase_if(groups, [&](const ModuleGroup& group) { return modules.take(group); });
    return groups;
  };
  auto taking = co_await workers_.run(std::move(take));
  PRIMS_CO_ASSIGN_OR_RETURN(auto missing, std::move(taking));
  if (missing.empty()) co_return Result<>();

  if (progress) progress(kCompiling);
  auto work =
      std::make_shared<Work>(std::move(build), std::move(modules), deadline, in_order(std::move(missing)));
  const auto executor = co_await io::this_executor;
  io::TaskScope beside(executor);
  beside.spawn(keep_saying(std::move(progress), kCompiling), "progress of an installation");
  io::TaskScope sandboxes(executor);
  const auto count = std::clamp(cores() / 4, kLeastSandboxes, kMostSandboxes);
  for (unsigned i = 0; i < count; ++i) sandboxes.spawn(work_off(work), "compiling modules");
  auto compiled = co_await sandboxes.join();
  while (sandboxes.size() > 0) {
    // Asked to end: the Tasks use this object and the build directory, so nothing goes before they have.
    work->groups.clear();
    sandboxes.cancel();
    std::ignore = co_await sandboxes.join(Deadline::after(kPatience));
  }
  beside.cancel();
  std::ignore = co_await beside.join();
  PRIMS_CO_RETURN_ON_ERROR(std::move(compiled));
  co_return work->result;
}

io::Task<> ModuleCompiler::work_off(std::shared_ptr<Work> work) {
  while (!work->groups.empty()) {
    auto group = std::move(work->groups.front());
    work->groups.pop_front();
    auto compiled = co_await compile_group(work, std::move(group));
    if (!compiled) {
      work->result = std::move(compiled);
      work->groups.clear();
    }
  }
}

sandbox::FileEntry ModuleCompiler::list_of(const ModuleGroup& group) const {
  const auto packages = fmt::format("{}/{}/", kEnvironmentPath, site_packages(interpreter_));
  sandbox::FileEntry list{.path = kModules, .content = {}};
  for (const auto& module : group.modules) list.content += packages + module + "\n";
  return list;
}

io::Task<Result<>> ModuleCompiler::compile_group(std::shared_ptr<Work> work, ModuleGroup group) {
  const auto made = work->build / fmt::format("compiled-{}", work->begun++);
  auto prepare = [made, owner = workshop_.owner()] { return make_writable(made, owner); };
  auto prepared = co_await workers_.run(std::move(prepare));
  PRIMS_CO_RETURN_ON_ERROR(std::move(prepared));
  Job job{.argv = {interpreter_.executable, "-I", "-S", "-W", "ignore", kProgram,
                   std::to_string(processes_for(group)), kModules, kOutputMount},
          .environment = {kMemoryIsKept.begin(), kMemoryIsKept.end()},
          .files = {{.path = kProgram, .content = kCompile}, list_of(group)},
          .attachments = {{.source = (work->build / "env").string(), .target = kEnvironmentMount},
                          {.source = made.string(),
                           .target = kOutputMount,
                           .access = sandbox::Access::read_write}},
          .indexes = {},
          .file_hosts = {},
          .deadline = work->deadline};
  auto ran = co_await workshop_.run(std::move(job));
  PRIMS_CO_ASSIGN_OR_RETURN(const auto result, std::move(ran));
  if (!result.succeeded())
    log::warning("not all modules of a layer could be compiled: {}", last_lines(to_utf8(result.err), 3));
  const auto how_many = result.succeeded() ? CompiledModules::Made::all : CompiledModules::Made::some;
  auto place = [work, group, made, how_many] { return work->modules.place(group, made, how_many); };
  auto placed = co_await workers_.run(std::move(place));
  co_return placed;
}

}  // namespace prims::layers

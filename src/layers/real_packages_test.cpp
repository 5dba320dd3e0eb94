// Layers made for real: uv in real sandboxes, against a package index that this test serves on loopback and,
// where it answers, against the default one. Skipped with the reason where something that it needs is not
// there.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "io/loop.h"
#include "io/workers.h"
#include "json/json.h"
#include "layers/interpreter.h"
#include "layers/store.h"
#include "layers/tool_process.h"
#include "layers/uv_tool.h"
#include "layers/workshop.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string read_all(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

/// A socket on 127.0.0.1 that counts who comes.
class Canary {
 public:
  Canary() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const bool ready = ::bind(socket_.get(), generic, size) == 0 && ::listen(socket_.get(), 8) == 0 &&
                       ::getsockname(socket_.get(), generic, &size) == 0;
    EXPECT_TRUE(ready);
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }
  bool touched() const { return UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid(); }

 private:
  UniqueFd socket_;
  std::uint16_t port_ = 0;
};

/// Serves a directory as a package index on a free port of 127.0.0.1.
class FileIndex {
 public:
  FileIndex(const std::string& python, const fs::path& directory) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd read(ends[0]);
    UniqueFd write(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write.get(), 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    const std::array<std::string, 9> words = {
        python, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", directory.string(), "0"};
    std::vector<char*> argv;
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::array<char*, 1> environment{nullptr};
    EXPECT_EQ(::posix_spawn(&child_, python.c_str(), &actions, nullptr, argv.data(), environment.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    write.reset();
    read_port(read.get());
  }
  FileIndex(const FileIndex&) = delete;
  FileIndex& operator=(const FileIndex&) = delete;
  ~FileIndex() { stop(); }

  std::string url() const { return fmt::format("http://127.0.0.1:{}/", port_); }

  void stop() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, -1), nullptr, 0);
  }

 private:
  /// "Serving HTTP on 127.0.0.1 port 40000 (http://...) ..."
  void read_port(int fd) {
    std::string said;
    std::array<char, 256> chunk{};
    while (said.find('\n') == std::string::npos) {
      const auto got = ::read(fd, chunk.data(), chunk.size());
      if (got <= 0) break;
      said.append(chunk.data(), static_cast<std::size_t>(got));
    }
    const auto at = said.find(" port ");
    ASSERT_NE(at, std::string::npos) << said;
    port_ = std::atoi(said.c_str() + at + 6);
  }

  pid_t child_ = -1;
  int port_ = 0;
};

/// Writes source distributions whose build backend is their own file backend.py, so that building needs no
/// other package.
constexpr const char* kMakeSdist = R"(
import io, sys, tarfile
folder, name, backend, extra_name, extra = sys.argv[1:6]
project = '[project]\nname = "%s"\nversion = "1.0"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n' % name
with tarfile.open("%s/%s-1.0.tar.gz" % (folder, name), "w:gz") as archive:
    files = {"pyproject.toml": project, "backend.py": backend, "PKG-INFO": "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name}
    if extra_name:
        files[extra_name] = extra
    for path, text in files.items():
        data = text.encode()
        entry = tarfile.TarInfo("%s-1.0/%s" % (name, path))
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
)";

/// What every backend of these tests shares: a wheel of the files that `content(name)` gives.
constexpr const char* kBackend = R"(
import os, zipfile

def wheel(directory, name, files, tag="py3-none-any"):
    info = "%s-1.0.dist-info" % name
    files[info + "/METADATA"] = "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name
    files[info + "/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: %s\n" % tag
    files[info + "/RECORD"] = "".join("%s,,\n" % path for path in files) + info + "/RECORD,,\n"
    file = "%s-1.0-%s.whl" % (name, tag)
    with zipfile.ZipFile(os.path.join(directory, file), "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return file

def get_requires_for_build_wheel(settings=None):
    return []

def build_wheel(directory, settings=None, metadata=None):
)";

class RealPackages : public testing::Test {
 protected:
  void SetUp() override {
    auto found = find_interpreter(search_from_environment(""));
    if (!found) GTEST_SKIP() << found.error().message;
    interpreter_ = *std::move(found);
    std::string pattern = "/tmp/prims-packages-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(root_ / "index");
    auto host = sandbox::Host::create({});
    if (!host) GTEST_SKIP() << "no sandbox on this machine: " << host.error().message;
    host_ = *std::move(host);
  }
  void TearDown() override {
    workers_.reset();
    if (!root_.empty()) fs::remove_all(root_);
  }

  fs::path state() const { return root_ / "state"; }

  /// uv is fetched once for all of these tests.
  bool have_uv() {
    static const fs::path kept = [this] {
      // In the working directory, the build folder, so that it is fetched once for many runs.
      const auto shared = fs::absolute(fmt::format("prims-test-uv-{}", ::geteuid()));
      for (const char* name : {"tools", "builds"}) fs::create_directories(shared / name);
      const auto uv =
          loop_.run_until_done(ensure_uv({.state = shared, .interpreter = interpreter_}, workers_.get()));
      return uv ? uv->parent_path() : fs::path();
    }();
    if (kept.empty()) return false;
    fs::create_directories(state() / "tools");
    fs::copy(kept, state() / "tools" / kept.filename(), fs::copy_options::recursive);
    return true;
  }

  void open(std::string index, std::vector<std::string> base = {}) {
    StoreOptions options{.state = state(),
                         .interpreter = interpreter_,
                         .index_url = std::move(index),
                         .extra_index_urls = {},
                         .base = std::move(base),
                         .program_directory = {}};
    auto made = Store::create(std::move(options), *host_, *workers_);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    store_ = *std::move(made);
  }

  Result<Outcome> get(std::vector<std::string> requirements, Base base = Base::without) {
    Request request{.requirements = std::move(requirements), .base = base};
    const auto start = Clock::now();
    // Shown, because this is where the time goes.
    const auto progress = [start](const std::string& text) {
      const auto passed = std::chrono::duration_cast<Milliseconds>(Clock::now() - start).count();
      std::printf("%7lld ms  %s\n", static_cast<long long>(passed), text.c_str());
    };
    auto outcome = loop_.run_until_done(store_->get(std::move(request), progress));
    progress("done");
    return outcome;
  }

  void add_sdist(const std::string& name, const std::string& build, const std::string& extra_name = "",
                 const std::string& extra = "") const {
    fs::create_directories(root_ / "index" / name);
    ToolCommand command{
        .argv = {interpreter_.executable, "-I", "-c", kMakeSdist, (root_ / "index" / name).string(), name,
                 kBackend + build, extra_name, extra},
        .environment = {}};
    const auto made = run_tool_blocking(command, Deadline::after(std::chrono::seconds(30)));
    ASSERT_TRUE(made.has_value() && made->status == 0) << made->err;
  }

  /// What a program prints that runs in a sandbox with that layer, read-only as for every run.
  std::string run_on(const Layer& layer, std::vector<std::string> argv) {
    Workshop workshop(*host_, interpreter_);
    Job job{.argv = std::move(argv),
            .environment = {},
            .files = {},
            .attachments = {{.source = layer.directory.string(), .target = kEnvironmentMount}},
            .indexes = {},
            .file_hosts = {},
            .deadline = Deadline::after(std::chrono::minutes(2))};
    const auto result = loop_.run_until_done(workshop.run(std::move(job)));
    return result ? result->out + result->err : result.error().message;
  }

  fs::path packages_of(const Layer& layer) const {
    const auto minor = interpreter_.version.substr(0, interpreter_.version.rfind('.'));
    return layer.directory / "lib" / ("python" + minor) / "site-packages";
  }

  io::Loop loop_;
  std::unique_ptr<io::Workers> workers_ = std::make_unique<io::Workers>();
  std::unique_ptr<sandbox::Host> host_;
  std::unique_ptr<Store> store_;
  Interpreter interpreter_;
  fs::path root_;
};

/// Imports what a layer has and tells what had to be compiled for it.
constexpr const char* kImport = R"(
import importlib, importlib.machinery, os, sys
compiled = []
original = importlib.machinery.SourceFileLoader.source_to_code
def watched(self, data, path, **options):
    compiled.append(path)
    return original(self, data, path, **options)
importlib.machinery.SourceFileLoader.source_to_code = watched
for name in sys.argv[1:]:
    importlib.import_module(name)
loaded = [m for m in sys.modules.values() if (getattr(m, "__file__", None) or "").startswith("/env/")]
missing = [m.__file__ for m in loaded if m.__file__.endswith(".py") and not os.path.exists(m.__cached__)]
print(len(loaded) > 0, compiled, missing)
)";

#define NEEDS_UV() \
  if (!have_uv()) GTEST_SKIP() << "uv cannot be fetched here"

const Layer& layer_of(const Result<Outcome>& outcome) {
  static const Layer none;
  if (!outcome) {
    ADD_FAILURE() << outcome.error().message;
    return none;
  }
  if (const auto* failure = std::get_if<DependencyError>(&*outcome)) {
    ADD_FAILURE() << failure->message << "\n" << failure->hint << "\n" << failure->log;
    return none;
  }
  return std::get<Layer>(*outcome);
}

TEST_F(RealPackages, ExtensionIsCompiledFromSource) {
  NEEDS_UV();
  add_sdist("fastsum", R"(
    import subprocess, sysconfig
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    subprocess.check_call(["cc", "-shared", "-fPIC", "fastsum.c", "-o", "fastsum" + suffix])
    with open("fastsum" + suffix, "rb") as built:
        return wheel(directory, "fastsum", {"fastsum" + suffix: built.read()})
)",
            "fastsum.c", "int fastsum(int a, int b) { return a + b; }\n");
  FileIndex index(interpreter_.executable, root_ / "index");
  open(index.url());
  const auto outcome = get({"fastsum"});
  const auto& layer = layer_of(outcome);
  EXPECT_THAT(layer.packages, testing::ElementsAre("fastsum==1.0"));
  bool built = false;
  for (const auto& entry : fs::directory_iterator(packages_of(layer))) {
    built = built ||
            (entry.path().filename().string().starts_with("fastsum") && entry.path().extension() == ".so");
  }
  EXPECT_TRUE(built);
  index.stop();
  EXPECT_EQ(layer_of(get({"fastsum"})).lock, layer.lock) << "known now, so the index is not needed";
}

TEST_F(RealPackages, HostileSourceDistributionReachesNothing) {
  NEEDS_UV();
  const Canary canary;
  std::ofstream(root_ / "secret") << "secret of the host";
  fs::create_directories(state() / "layers/victim/env");
  std::ofstream(state() / "layers/victim/env/module.py") << "x = 1";
  fs::permissions(root_, fs::perms(0755));
  const auto attack = fmt::format(R"(
    import json, os, socket
    reached = []
    def attempt(what, action):
        try:
            action()
            reached.append(what)
        except OSError:
            pass
    attempt("a file of the host", lambda: open("{0}/secret").read())
    attempt("a directory of the host", lambda: os.listdir("{0}"))
    attempt("passwords of the host", lambda: open("/etc/shadow").read())
    attempt("the layer store", lambda: os.listdir("{1}/layers"))
    attempt("a layer", lambda: open("{1}/layers/victim/env/module.py", "a").write("evil"))
    attempt("the shared cache", lambda: os.listdir("{1}/uv-cache"))
    attempt("a listener on loopback", lambda: socket.create_connection(("127.0.0.1", {2}), 2))
    attempt("a public address", lambda: socket.create_connection(("192.0.2.1", 80), 2))
    attempt("a name service", lambda: socket.getaddrinfo("localhost.localdomain.example", 80))
    if os.getuid() == 0:
        reached.append("uid 0")
    os.symlink("{0}/secret", "/env/stolen")
    report = json.dumps({{"reached": reached}})
    return wheel(directory, "hostile", {{"hostile_report.json": report,
        "hostile.pth": "import os; os.environ.setdefault('X', open('/env/ran', 'w').name)\n"}})
)",
                                  root_.string(), state().string(), canary.port());
  add_sdist("hostile", attack);
  FileIndex index(interpreter_.executable, root_ / "index");
  open(index.url());
  const auto outcome = get({"hostile"});
  const auto& layer = layer_of(outcome);
  EXPECT_EQ(read_all(packages_of(layer) / "hostile_report.json"), R"({"reached": []})");
  EXPECT_FALSE(canary.touched());
  EXPECT_EQ(read_all(state() / "layers/victim/env/module.py"), "x = 1");
  EXPECT_FALSE(fs::is_symlink(layer.directory / "stolen")) << "links that lead out are removed";
  EXPECT_FALSE(fs::exists(layer.directory / "ran")) << "no .pth file runs while a layer is made";
}

TEST_F(RealPackages, FailuresSayWhatToDo) {
  NEEDS_UV();
  add_sdist("broken", "\n    raise RuntimeError('boom at build')\n");
  FileIndex index(interpreter_.executable, root_ / "index");
  open(index.url());
  const auto built = get({"broken"});
  ASSERT_TRUE(built.has_value()) << built.error().message;
  const auto& failed = std::get<DependencyError>(*built);
  EXPECT_EQ(failed.message, "Building broken==1.0 from source failed.");
  EXPECT_THAT(failed.log, HasSubstr("boom at build"));
  const auto missing = get({"surely-not-there"});
  ASSERT_TRUE(missing.has_value()) << missing.error().message;
  EXPECT_THAT(std::get<DependencyError>(*missing).message, HasSubstr("surely-not-there does not exist"));
  const auto version = get({"broken==2"});
  ASSERT_TRUE(version.has_value()) << version.error().message;
  EXPECT_THAT(std::get<DependencyError>(*version).message, HasSubstr("broken==2"));
  index.stop();
  const auto away = get({"other"});
  ASSERT_TRUE(away.has_value()) << away.error().message;
  EXPECT_THAT(std::get<DependencyError>(*away).message, HasSubstr("cannot be reached"));
  EXPECT_TRUE(fs::is_empty(state() / "builds"));
}

TEST_F(RealPackages, SeveralProcessesMakeOneLayer) {
  NEEDS_UV();
  for (const std::string name : {"one", "two", "three"}) {
    add_sdist(name, fmt::format("\n    return wheel(directory, '{0}', {{'{0}.py': 'x = 1'}})\n", name));
  }
  FileIndex index(interpreter_.executable, root_ / "index");
  std::vector<pid_t> children;
  for (int process = 0; process < 3; ++process) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    // Everything anew: a loop, its workers and a host belong to one process.
    io::Loop loop;
    io::Workers workers;
    auto host = sandbox::Host::create({});
    StoreOptions options{.state = state(), .interpreter = interpreter_, .index_url = index.url(), .base = {}};
    auto store = host ? Store::create(std::move(options), **host, workers)
                      : Result<std::unique_ptr<Store>>(std::unexpected(host.error()));
    if (!store) ::_exit(2);
    Request request{.requirements = {"one", "two", "three"}, .base = Base::without};
    const auto made = loop.run_until_done((*store)->get(std::move(request), {}));
    ::_exit(made && std::holds_alternative<Layer>(*made) ? 0 : 1);
  }
  for (const auto child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(state() / "layers"), fs::directory_iterator()), 1);
}

TEST_F(RealPackages, DefaultIndexServesPackages) {
  NEEDS_UV();
  open("", {"numpy", "pandas", "openpyxl", "requests", "matplotlib"});
  const auto outcome = get({"pyfiglet==1.0.2"});
  if (outcome && std::holds_alternative<DependencyError>(*outcome)) {
    GTEST_SKIP() << "the default index does not answer: " << std::get<DependencyError>(*outcome).message;
  }
  const auto& layer = layer_of(outcome);
  EXPECT_THAT(layer.packages, testing::ElementsAre("pyfiglet==1.0.2"));
  EXPECT_TRUE(fs::exists(packages_of(layer) / "pyfiglet/__init__.py"));
  EXPECT_TRUE(fs::exists(packages_of(layer) / "pyfiglet/__pycache__"));

  const auto newer = get({"networkx==3.7"});
  const int minor = std::atoi(interpreter_.version.c_str() + 2);
  if (minor < 12) {
    ASSERT_TRUE(newer.has_value());
    EXPECT_THAT(std::get<DependencyError>(*newer).message, HasSubstr("networkx==3.7 needs Python >=3.12"));
  }

  const auto base = get({}, Base::with);
  const auto& complete = layer_of(base);
  EXPECT_THAT(complete.packages, Contains(StartsWith("pandas==")));
  EXPECT_TRUE(fs::exists(packages_of(complete) / "pandas/__pycache__"));
  EXPECT_FALSE(fs::is_empty(complete.directory / "share/prims/matplotlib"));
  EXPECT_EQ(run_on(complete, {"/env/bin/python", "-I", "-c", kImport, "numpy", "pandas", "matplotlib.pyplot",
                              "openpyxl", "requests"}),
            "True [] []\n");
}

}  // namespace
}  // namespace prims::layers

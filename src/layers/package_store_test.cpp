#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"
#include "io/workers.h"
#include "layers/store.h"
#include "layers/uv_tool.h"

namespace prims::layers {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kBadNetwork =
    "error: Failed to fetch: http://127.0.0.1:1/index/0/a/\n  cause: error sending request for url "
    "(http://127.0.0.1:1/)\n";

/// What a fake uv was started with, and what it may write to.
struct Call {
  std::vector<std::string> argv;
  std::vector<sandbox::FileEntry> files;
  std::vector<sandbox::Attachment> attachments;

  bool is(std::string_view word) const { return std::ranges::find(argv, word) != argv.end(); }
  std::string file() const { return files.empty() ? "" : files.front().content; }
  fs::path attached(std::string_view target) const {
    for (const auto& attachment : attachments) {
      if (attachment.target == target) return attachment.source;
    }
    return {};
  }
};

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

using Script = std::function<Answer(const Call&)>;

/// Answers in place of the program that would run in it.
class FakeSandbox final : public sandbox::Sandbox {
 public:
  FakeSandbox(sandbox::PrepareSpec spec, const Script& script, std::vector<Call>& calls)
      : spec_(std::move(spec)), script_(script), calls_(calls) {}

  io::Task<Result<>> attach(std::vector<sandbox::Attachment> attachments) override {
    attachments_ = std::move(attachments);
    co_return Result<>();
  }
  Result<> watch() override { return {}; }
  io::Task<Result<>> start(sandbox::StartSpec start) override {
    std::vector<sandbox::FileEntry> files;
    for (const auto& file : spec_.root.files) {
      if (file.path.starts_with("/opt/job/")) files.push_back(file);
    }
    calls_.push_back({start.argv, std::move(files), attachments_});
    const auto answer = script_(calls_.back());
    code_ = answer.code;
    EXPECT_GE(::write(start.standard_output.get(), answer.out.data(), answer.out.size()), 0);
    EXPECT_GE(::write(start.standard_error.get(), answer.err.data(), answer.err.size()), 0);
    co_return Result<>();
  }
  io::Task<bool> ended_by(Deadline) override {
    // Long enough for others to join.
    std::ignore = co_await io::sleep_until(Deadline::after(Milliseconds(5)));
    co_return true;
  }
  void signal(int) override {}
  void kill(sandbox::Outcome) override {}
  io::Task<sandbox::Outcome> finish() override { co_return sandbox::Exited{code_}; }
  sandbox::Usage usage() const override { return {}; }
  UniqueFd take_broker_socket() override {
    UniqueFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::listen(listening.get(), 1), 0);
    return listening;
  }

 private:
  sandbox::PrepareSpec spec_;
  const Script& script_;
  std::vector<Call>& calls_;
  std::vector<sandbox::Attachment> attachments_;
  int code_ = 0;
};

class FakeHost final : public sandbox::Host {
 public:
  io::Task<Result<std::unique_ptr<sandbox::Template>>> make_template(sandbox::TemplateSpec) override {
    co_return fail(Kind::unavailable, "no templates here");
  }
  io::Task<Result<std::unique_ptr<sandbox::Sandbox>>> prepare(sandbox::PrepareSpec spec) override {
    auto sandbox = std::make_unique<FakeSandbox>(std::move(spec), script, calls);
    co_return std::move(sandbox);
  }
  uid_t workspace_owner() const override { return ::geteuid(); }
  sandbox::Tier tier() const override { return sandbox::Tier::full; }
  sandbox::Enforcement enforcement() const override { return {}; }

  Script script;
  std::vector<Call> calls;
};

class PackageStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/prims-store-XXXXXX";
    state_ = ::mkdtemp(pattern.data());
    const auto tool = state_ / "tools" / fmt::format("uv-{}", uv_version());
    fs::create_directories(tool);
    std::ofstream(tool / "uv") << "never run";
    fs::permissions(tool / "uv", fs::perms(0755));
    host_.script = [this](const Call& call) { return index(call); };
    open();
  }
  void TearDown() override {
    workers_.reset();  // waits for housekeeping
    fs::remove_all(state_);
  }

  void open() {
    StoreOptions options{.state = state_,
                         .interpreter = {.executable = python_,
                                         .version = "3.11.2",
                                         .key = "cpython-3.11.2-test",
                                         .cache_tag = "cpython-311",
                                         .directories = {},
                                         .standard_library = {"json", "os"}},
                         .index_url = "http://127.0.0.1:1/simple/",
                         .extra_index_urls = {},
                         .base = {"numpy", "pandas"},
                         .size_limit = gib(1),
                         .install_timeout = Milliseconds(20'000),
                         .resolution_lifetime = lifetime_,
                         .program_directory = {}};
    auto made = Store::create(std::move(options), host_, *workers_);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    store_ = *std::move(made);
  }

  /// An index in which every package exists in version 1, has no dependencies, and never fails.
  Answer index(const Call& call) {
    if (unreachable_) return {2, "", kBadNetwork};
    if (call.is("compile")) {
      std::string lock;
      std::istringstream lines(call.file());
      for (std::string name; std::getline(lines, name);) lock += name + "==1 \\\n    --hash=sha256:00\n";
      return {0, lock, ""};
    }
    if (call.is("install")) install(call.attached("/mnt/env"));
    if (call.is("/opt/job/compile.py")) {
      std::istringstream lines(call.files.back().content);
      int number = 0;
      for (std::string module; std::getline(lines, module); ++number)
        std::ofstream(call.attached("/mnt/out") / std::to_string(number)) << "compiled " << module;
    }
    return {};
  }

  /// Two packages large enough for their compiled modules to be kept, and one that is not.
  static void install(const fs::path& environment) {
    std::ofstream(environment / "installed") << "yes";
    const auto packages = environment / "lib/python3.11/site-packages";
    for (const char* name : {"large", "larger", "small"}) {
      fs::create_directories(packages / name);
      const std::size_t size = name == std::string_view("small") ? 10 : 200'000;
      std::ofstream(packages / name / "code.py") << std::string(size, '#');
    }
  }

  Result<Outcome> get(std::vector<std::string> requirements, Base base = Base::without) {
    Request request{.requirements = std::move(requirements), .base = base};
    return loop_.run_until_done(
        store_->get(std::move(request), [this](const std::string& text) { said_.push_back(text); }));
  }

  Layer layer(std::vector<std::string> requirements, Base base = Base::without) {
    auto outcome = get(std::move(requirements), base);
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
    if (!outcome || !std::holds_alternative<Layer>(*outcome)) {
      ADD_FAILURE() << (outcome ? std::get<DependencyError>(*outcome).message : "");
      return {};
    }
    return std::get<Layer>(*std::move(outcome));
  }

  DependencyError refusal(std::vector<std::string> requirements, Base base = Base::without) {
    auto outcome = get(std::move(requirements), base);
    EXPECT_TRUE(outcome.has_value() && std::holds_alternative<DependencyError>(*outcome));
    return outcome ? std::get<DependencyError>(*std::move(outcome)) : DependencyError{};
  }

  std::ptrdiff_t count(std::string_view word) const {
    return std::ranges::count_if(host_.calls, [&](const Call& call) { return call.is(word); });
  }

  fs::path state_;
  io::Loop loop_;
  std::unique_ptr<io::Workers> workers_ = std::make_unique<io::Workers>();
  FakeHost host_;
  std::chrono::hours lifetime_{24};
  bool unreachable_ = false;
  std::string python_ = "/usr/bin/python3.11";
  std::vector<std::string> said_;
  std::unique_ptr<Store> store_;
};

TEST_F(PackageStoreTest, LayerIsBuiltOnceAndFoundFromThenOn) {
  EXPECT_FALSE(store_->find({.requirements = {"Alpha"}, .base = Base::without}).has_value());
  const auto first = layer({"alpha"});
  EXPECT_THAT(first.packages, ElementsAre("alpha==1"));
  EXPECT_TRUE(fs::exists(first.directory / "installed"));
  EXPECT_TRUE(fs::is_symlink(first.directory / "bin/python"));
  const auto calls = host_.calls.size();
  EXPECT_EQ(layer({"ALPHA"}).directory, first.directory);
  const auto found = store_->find({.requirements = {"Alpha"}, .base = Base::without});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->lock, first.lock);
  open();
  EXPECT_TRUE(store_->find({.requirements = {"alpha"}, .base = Base::without}).has_value())
      << "another process";
  EXPECT_EQ(host_.calls.size(), calls) << "nothing was run again";
}

TEST_F(PackageStoreTest, ProgressIsReported) {
  layer({"alpha"});
  EXPECT_THAT(said_, testing::Contains("resolving alpha"));
  EXPECT_THAT(said_, testing::Contains("installing 1 packages"));
}

io::Task<> try_get(Store* store, Progress progress, std::optional<Result<Outcome>>* into) {
  Request request{.requirements = {"alpha"}, .base = Base::without};
  auto outcome = co_await store->get(std::move(request), std::move(progress));
  into->emplace(std::move(outcome));
}

/// Starts to make something, stops the store once it says that, and returns what stop() gave.
io::Task<Result<>> stop_when(Store* store, std::string said, std::optional<Result<Outcome>>* outcome) {
  const auto executor = co_await io::this_executor;
  io::TaskScope scope(executor);
  const io::Event reached;
  Progress progress = [reached, said](const std::string& text) {
    if (text == said) reached.set();
  };
  scope.spawn(try_get(store, std::move(progress), outcome), "a request");
  auto begun = co_await reached.wait(Deadline::after(std::chrono::seconds(60)));
  PRIMS_CO_RETURN_ON_ERROR(std::move(begun));
  auto stopped = co_await store->stop(Deadline::after(std::chrono::seconds(60)));
  PRIMS_CO_RETURN_ON_ERROR(std::move(stopped));
  auto joined = co_await scope.join(Deadline::after(std::chrono::seconds(60)));
  co_return joined;
}

TEST_F(PackageStoreTest, StopEndsTheDownloadOfTheInstaller) {
  fs::remove_all(state_ / "tools");
  python_ = state_ / "python";
  std::ofstream(python_) << "#!/bin/sh\n[ \"$4\" = --version ] || exec sleep 300\n";
  fs::permissions(python_, fs::perms(0755));
  open();
  std::optional<Result<Outcome>> outcome;
  const auto begin = Clock::now();
  const auto stopped = loop_.run_until_done(stop_when(store_.get(), "fetching the installer (uv)", &outcome));
  EXPECT_TRUE(stopped.has_value()) << stopped.error().message;
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
  EXPECT_TRUE(outcome.has_value());
}

io::Task<> get_into(Store& store, Request request, std::vector<std::string>& names) {
  auto outcome = co_await store.get(std::move(request), {});
  if (outcome && std::holds_alternative<Layer>(*outcome)) names.push_back(std::get<Layer>(*outcome).lock);
}

io::Task<> get_all(Store& store, std::vector<Request> requests, std::vector<std::string>& names) {
  const auto executor = co_await io::this_executor;
  io::TaskScope scope(executor);
  for (auto& request : requests) scope.spawn(get_into(store, std::move(request), names), "test");
  std::ignore = co_await scope.join();
}

TEST_F(PackageStoreTest, ConcurrentWishesForTheSameAreBuiltOnce) {
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i)
    requests.push_back({.requirements = {"p" + std::to_string(i % 5)}, .base = Base::without});
  std::vector<std::string> names;
  loop_.run_until_done(get_all(*store_, std::move(requests), names));
  EXPECT_EQ(names.size(), 20U);
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  EXPECT_EQ(names.size(), 5U);
  EXPECT_EQ(count("install"), 5);
}

TEST_F(PackageStoreTest, DifferentWishesWithOneLockShareALayer) {
  host_.script = [](const Call& call) {
    return Answer{0, call.is("compile") ? "alpha==1 \\\n    --hash=sha256:00\n" : "", ""};
  };
  EXPECT_EQ(layer({"alpha"}).lock, layer({"alpha>=1"}).lock);
  EXPECT_EQ(count("install"), 1);
}

TEST_F(PackageStoreTest, BasePackagesComeAlongUnlessNamed) {
  EXPECT_THAT(layer({}, Base::with).packages, ElementsAre("numpy==1", "pandas==1"));
  EXPECT_THAT(layer({"alpha", "pandas"}, Base::with).packages,
              ElementsAre("alpha==1", "numpy==1", "pandas==1"));
}

TEST_F(PackageStoreTest, WishWinsOverTheBase) {
  host_.script = [this](const Call& call) {
    if (call.is("compile") && call.file().find("numpy") != std::string::npos) {
      return Answer{
          1, "",
          "error: No solution found when resolving dependencies\n  cause: Because alpha and numpy disagree"};
    }
    return index(call);
  };
  const auto made = layer({"alpha"}, Base::with);
  EXPECT_THAT(made.packages, ElementsAre("alpha==1"));
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("base packages (numpy, pandas) are left out")));
  const auto found = store_->find({.requirements = {"alpha"}, .base = Base::with});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->notes, made.notes);
}

TEST_F(PackageStoreTest, StandardLibraryNamesGiveANote) {
  const auto made = layer({"json", "alpha"});
  EXPECT_THAT(made.packages, ElementsAre("alpha==1"));
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("standard library")));
  const auto bare = layer({"os"});
  EXPECT_THAT(bare.packages, IsEmpty());
  EXPECT_THAT(bare.notes, ElementsAre(HasSubstr("standard library")));
  EXPECT_EQ(bare.lock, loop_.run_until_done(store_->plain())->lock);
}

TEST_F(PackageStoreTest, KnownSetNeedsNoIndex) {
  const auto made = layer({"alpha"});
  unreachable_ = true;
  EXPECT_EQ(layer({"alpha"}).lock, made.lock);
  lifetime_ = std::chrono::hours(0);
  open();
  EXPECT_FALSE(store_->find({.requirements = {"alpha"}, .base = Base::without}).has_value())
      << "too old to be sure";
  EXPECT_EQ(layer({"alpha"}).lock, made.lock) << "old, but the index does not answer";
  EXPECT_THAT(refusal({"beta"}).message, HasSubstr("cannot be reached"));
}

TEST_F(PackageStoreTest, WithoutIndexThePlainInterpreterRemains) {
  unreachable_ = true;
  const auto refused = refusal({}, Base::with);
  EXPECT_THAT(refused.message, HasSubstr("cannot be reached"));
  EXPECT_FALSE(refused.log.empty());
  const auto bare = loop_.run_until_done(store_->plain());
  ASSERT_TRUE(bare.has_value());
  EXPECT_TRUE(fs::is_symlink(bare->directory / "bin/python3"));
  EXPECT_EQ(loop_.run_until_done(store_->plain())->directory, bare->directory);
}

TEST_F(PackageStoreTest, BuildingFromSourceNeverTouchesTheSharedCache) {
  host_.script = [this](const Call& call) {
    if (call.is("compile") && call.is("--no-build")) {
      return Answer{
          1, "",
          "error: No solution found\n  cause: Because alpha==1 has no usable wheels and you require alpha\n"};
    }
    return index(call);
  };
  layer({"alpha"});
  const auto shared = state_ / "uv-cache";
  int builds = 0;
  for (const auto& call : host_.calls) {
    if (!call.is("compile") && !call.is("install")) continue;
    const bool may_build = !call.is("--no-build");
    builds += may_build ? 1 : 0;
    EXPECT_EQ(call.attached("/mnt/cache").string().starts_with(shared.string()), !may_build);
  }
  EXPECT_EQ(builds, 2);
}

TEST_F(PackageStoreTest, CodeOfALayerNeverRunsWhileItCanBeChanged) {
  layer({"matplotlib"});
  bool fonts = false;
  for (const auto& call : host_.calls) {
    for (const auto& attachment : call.attachments) {
      // The layers themselves are never there.
      EXPECT_THAT(attachment.source, testing::Not(HasSubstr("/layers")));
      if (call.argv.front() == "/env/bin/python") {
        fonts = true;
        const bool is_environment = attachment.target == "/mnt/env";
        EXPECT_EQ(attachment.access == sandbox::Access::read_only, is_environment);
      }
    }
  }
  EXPECT_TRUE(fonts);
}

TEST_F(PackageStoreTest, ModulesAreCompiledOnceForAllLayers) {
  const auto first = layer({"alpha"});
  EXPECT_EQ(count("/opt/job/compile.py"), 3);
  const auto second = layer({"beta"});
  EXPECT_EQ(count("/opt/job/compile.py"), 4) << "only what is not kept";
  for (const auto& made : {first, second}) {
    for (const std::string name : {"large", "small"}) {
      const auto packages = made.directory / "lib/python3.11/site-packages";
      std::string text;
      std::getline(std::ifstream(packages / name / "__pycache__/code.cpython-311.pyc"), text);
      EXPECT_EQ(text, "compiled /env/lib/python3.11/site-packages/" + name + "/code.py");
    }
  }
}

TEST_F(PackageStoreTest, CompilerOfAPackageChangesNothingOfAnother) {
  layer({"alpha"});
  std::vector<fs::path> results;
  for (const auto& call : host_.calls) {
    if (!call.is("/opt/job/compile.py")) continue;
    for (const auto& attachment : call.attachments)
      EXPECT_EQ(attachment.access == sandbox::Access::read_write, attachment.target == "/mnt/out");
    results.push_back(call.attached("/mnt/out"));
    const auto& list = call.files.back().content;
    EXPECT_EQ(std::ranges::count(list, '\n'), 1) << "one package in each list: " << list;
  }
  std::ranges::sort(results);
  EXPECT_EQ(std::ranges::unique(results).size(), 0U);
}

TEST_F(PackageStoreTest, FailedCompilationIsNotKept) {
  host_.script = [this](const Call& call) {
    auto answer = index(call);
    if (call.is("/opt/job/compile.py")) answer.code = 1;
    return answer;
  };
  EXPECT_TRUE(fs::exists(layer({"alpha"}).directory / "installed"));
  EXPECT_TRUE(fs::is_empty(state_ / "compiled"));
}

TEST_F(PackageStoreTest, KnownSetReadsNothingOfTheDisk) {
  const Request request{.requirements = {"alpha"}, .base = Base::without};
  const auto made = layer({"alpha"});
  const auto calls = host_.calls.size();
  fs::rename(state_, state_.string() + ".away");
  const auto found = store_->find(request);
  fs::rename(state_.string() + ".away", state_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->packages, made.packages);
  EXPECT_EQ(host_.calls.size(), calls);
}

TEST_F(PackageStoreTest, LayerThatAnotherProcessRemovedIsMadeAgain) {
  auto made = std::optional(layer({"alpha"}));
  const auto directory = made->directory;
  made.reset();
  fs::remove_all(directory.parent_path());
  EXPECT_FALSE(store_->find({.requirements = {"alpha"}, .base = Base::without}).has_value());
  EXPECT_TRUE(fs::exists(layer({"alpha"}).directory / "installed"));
  EXPECT_EQ(count("compile"), 1) << "what it resolved to is still known";
}

TEST_F(PackageStoreTest, FailedInstallLeavesNothing) {
  host_.script = [this](const Call& call) {
    return call.is("install") ? Answer{1, "", "error: Failed to build `alpha==1`\n  cause: boom\n"}
                              : index(call);
  };
  EXPECT_THAT(refusal({"alpha"}).message, HasSubstr("Building alpha==1 from source failed"));
  EXPECT_TRUE(fs::is_empty(state_ / "layers"));
  EXPECT_TRUE(fs::is_empty(state_ / "builds"));
}

TEST_F(PackageStoreTest, RefusedRequirementsReachNoTool) {
  EXPECT_THAT(refusal({"git+https://example.org/x.git"}).message, HasSubstr("git+https"));
  EXPECT_THAT(host_.calls, IsEmpty());
}

}  // namespace
}  // namespace prims::layers

// What is made ahead, how much of it, and when it goes: with guests that only greet.
#include "python/templates.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "io/loop.h"
#include "io/wait.h"
#include "python/ahead.h"
#include "python/protocol.h"
#include "python/test_python.h"

namespace prims::python {
namespace {

using testing_support::temporary_workspaces;

using sandbox::ForkSpec;
using sandbox::Outcome;

class FakeSandbox;

/// What the fakes share with the test.
struct World {
  int templates_made = 0;
  int forks = 0;
  std::set<FakeSandbox*> sandboxes;  ///< that live
  bool templates_start = true;
  bool forks_work = true;
  bool attachments_work = true;
  std::map<std::string, std::shared_ptr<bool>> alive;  ///< by the directory of the layer
  std::vector<std::string> made;                       ///< directories, in order
  std::vector<std::string> arguments;                  ///< of the last template
};

class FakeSandbox final : public sandbox::Sandbox {
 public:
  FakeSandbox(World* world, ForkSpec ends)
      : attached(std::move(ends.attachments)), world_(world), ends_(std::move(ends)) {
    world_->sandboxes.insert(this);
    const std::string hello = encode(Message{FrameType::hello, 0, {}, ""});
    EXPECT_EQ(::write(ends_.extra.front().get(), hello.data(), hello.size()),
              static_cast<ssize_t>(hello.size()));
  }
  ~FakeSandbox() override { world_->sandboxes.erase(this); }

  io::Task<Result<>> attach(std::vector<sandbox::Attachment> attachments) override {
    if (!world_->attachments_work) co_return fail(Kind::unavailable, "gone");
    attached.insert(attached.end(), attachments.begin(), attachments.end());
    co_return Result<>();
  }
  Result<> watch() override { return {}; }
  io::Task<Result<>> start(sandbox::StartSpec) override { co_return Result<>(); }
  io::Task<bool> ended_by(Deadline) override { co_return true; }
  void signal(int) override {}
  void kill(Outcome) override { ends_ = ForkSpec{}; }
  io::Task<Outcome> finish() override { co_return sandbox::Cancelled{}; }
  sandbox::Usage usage() const override { return {}; }
  UniqueFd take_broker_socket() override { return {}; }

  std::vector<sandbox::Attachment> attached;

 private:
  World* world_;
  ForkSpec ends_;
};

class FakeTemplate final : public sandbox::Template {
 public:
  FakeTemplate(World* world, std::shared_ptr<bool> alive) : world_(world), alive_(std::move(alive)) {}

  io::Task<Result<std::unique_ptr<sandbox::Sandbox>>> fork(ForkSpec spec) override {
    if (!*alive_ || !world_->forks_work || !world_->attachments_work)
      co_return fail(Kind::unavailable, "it cannot");
    ++world_->forks;
    co_return std::make_unique<FakeSandbox>(world_, std::move(spec));
  }
  bool alive() const override { return *alive_; }

 private:
  World* world_;
  std::shared_ptr<bool> alive_;
};

class FakeHost final : public sandbox::Host {
 public:
  explicit FakeHost(World* world) : world_(world) {}

  io::Task<Result<std::unique_ptr<sandbox::Sandbox>>> prepare(sandbox::PrepareSpec) override {
    co_return fail(Kind::unavailable, "not here");
  }
  io::Task<Result<std::unique_ptr<sandbox::Template>>> make_template(sandbox::TemplateSpec spec) override {
    ++world_->templates_made;
    if (!world_->templates_start) {
      [[maybe_unused]] const ssize_t said = ::write(spec.start.standard_error.get(), "oops\n", 5);
      co_return fail(Kind::unavailable, "it did not warm up");
    }
    const std::string& directory = spec.attachments.front().source;
    auto alive = std::make_shared<bool>(true);
    world_->alive[directory] = alive;
    world_->made.push_back(directory);
    world_->arguments = spec.start.argv;
    co_return std::make_unique<FakeTemplate>(world_, std::move(alive));
  }
  uid_t workspace_owner() const override { return ::geteuid(); }
  sandbox::Tier tier() const override { return sandbox::Tier::full; }
  sandbox::Enforcement enforcement() const override { return {"cgroup1", "cgroup1", "cgroup1"}; }

 private:
  World* world_;
};

layers::Layer layer(const std::string& name, std::vector<std::string> packages = {}) {
  layers::Layer layer;
  layer.directory = "/layers/" + name;
  layer.packages = std::move(packages);
  layer.lease = std::make_shared<int>(0);
  return layer;
}

io::Task<> settle(const std::function<bool()>* condition) {
  const Deadline deadline = Deadline::after(Milliseconds(5000));
  while (!(*condition)() && !deadline.passed()) {
    [[maybe_unused]] auto slept = co_await io::sleep_until(Deadline::after(Milliseconds(1)));
  }
}

class TemplatesTest : public testing::Test {
 protected:
  TemplatesTest() { make({}); }
  ~TemplatesTest() override { stop(); }

  void make(WarmOptions options) {
    stop();
    templates_ = std::make_unique<Templates>(loop_.executor(), host_, layers::Interpreter{},
                                             temporary_workspaces(host_), options, [this] { return now_; });
  }
  void stop() {
    if (!templates_) return;
    EXPECT_TRUE(loop_.run_until_done(templates_->stop(Deadline::after(Milliseconds(5000)))));
    templates_.reset();
    EXPECT_TRUE(world_.sandboxes.empty());
  }

  /// One call, as the runner makes it.
  std::optional<Path> call(const layers::Layer& layer) {
    const auto stock = templates_->stock_for(layer, RunLimits{}, Weight::heavy);
    auto taken = loop_.run_until_done(Stock::take(stock, Workspace{.directory = "/workspace"}));
    std::optional<Path> path;
    if (taken) {
      EXPECT_EQ(static_cast<FakeSandbox&>(*taken->guest.sandbox).attached.back().source, "/workspace");
      path = taken->path;
      loop_.run_until_done(end_guest(std::move(taken->guest), nullptr));
    }
    templates_->served(stock, layer);
    return path;
  }

  void until(std::function<bool()> condition) {
    loop_.run_until_done(settle(&condition));
    EXPECT_TRUE(condition());
  }
  void until_full(const layers::Layer& layer, std::size_t waiting = 4) {
    const auto stock = templates_->stock_for(layer, RunLimits{}, Weight::heavy);
    until([&] { return stock->waiting() == waiting; });
  }
  std::size_t waiting(const layers::Layer& layer) {
    return templates_->stock_for(layer, RunLimits{}, Weight::heavy)->waiting();
  }

  World world_;
  FakeHost host_{&world_};
  Clock::time_point now_ = Clock::now();
  io::Loop loop_;
  std::unique_ptr<Templates> templates_;
};

TEST_F(TemplatesTest, AfterTheFirstUseThereIsATemplateAndAPool) {
  const layers::Layer base = layer("base", {"numpy==2.0", "Pandas==2.0", "six==1"});
  EXPECT_EQ(call(base), std::nullopt);
  until_full(base);
  EXPECT_EQ(world_.arguments.at(2), "template");
  EXPECT_TRUE(world_.arguments.at(3).starts_with(R"({"imports":["numpy","pandas"],"memory":)"))
      << world_.arguments.at(3);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(call(base), Path::pool);
    until_full(base);
  }
  EXPECT_EQ(world_.templates_made, 1);
  EXPECT_EQ(world_.forks, 14);
}

TEST_F(TemplatesTest, ABurstBeyondThePoolIsForked) {
  const layers::Layer base = layer("base");
  call(base);
  until_full(base);
  const auto stock = templates_->stock_for(base, RunLimits{}, Weight::heavy);
  std::vector<Guest> guests;
  for (int i = 0; i < 10; ++i) {
    auto taken = loop_.run_until_done(Stock::take(stock, Workspace{.directory = "/workspace"}));
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->path, i < 4 ? Path::pool : Path::fork);
    const bool used_before = std::ranges::any_of(
        guests, [&](const Guest& g) { return g.conversation == taken->guest.conversation; });
    EXPECT_FALSE(used_before);
    guests.push_back(std::move(taken->guest));
  }
  for (Guest& guest : guests) loop_.run_until_done(end_guest(std::move(guest), nullptr));
  templates_->served(stock, base);
  until_full(base);
}

TEST_F(TemplatesTest, AGuestThatEndsWhileItWaitsIsReplaced) {
  const layers::Layer base = layer("base");
  call(base);
  until_full(base);
  for (FakeSandbox* waiting : std::vector(world_.sandboxes.begin(), world_.sandboxes.end())) {
    waiting->kill(sandbox::OutOfMemory{});
  }
  until([&] { return waiting(base) == 0 && world_.sandboxes.empty(); });
  EXPECT_EQ(call(base), Path::fork);
  until_full(base);
  EXPECT_EQ(call(base), Path::pool);
}

TEST_F(TemplatesTest, ADeathThatNobodyHasSeenCostsNoCall) {
  const layers::Layer base = layer("base");
  call(base);
  until_full(base);
  world_.attachments_work = false;
  EXPECT_EQ(call(base), std::nullopt);
  world_.attachments_work = true;
  until_full(base);
  EXPECT_EQ(call(base), Path::pool);
}

TEST_F(TemplatesTest, ATemplateThatCannotStartIsTriedLessAndLessOften) {
  const layers::Layer base = layer("base");
  world_.templates_start = false;
  for (int i = 0; i < 600; ++i) {
    EXPECT_EQ(call(base), std::nullopt);
    until([&] { return true; });
    now_ += std::chrono::seconds(1);
  }
  EXPECT_GE(world_.templates_made, 5);
  EXPECT_LE(world_.templates_made, 11);
  world_.templates_start = true;
  now_ += std::chrono::minutes(20);
  call(base);
  until_full(base);
}

TEST_F(TemplatesTest, ATemplateThatDiesIsReplaced) {
  const layers::Layer base = layer("base");
  call(base);
  until_full(base);
  *world_.alive["/layers/base"] = false;
  EXPECT_EQ(call(base), Path::pool) << "guests that wait are as good as before";
  now_ += std::chrono::seconds(2);
  call(base);
  until_full(base);
  EXPECT_EQ(world_.templates_made, 2);
  EXPECT_EQ(call(base), Path::pool);
  now_ += std::chrono::seconds(20);
  *world_.alive["/layers/base"] = false;
  call(base);
  until([&] { return world_.templates_made == 3; });  // at once, when it has lived for a while
}

TEST_F(TemplatesTest, ATemplateWhoseForksFailIsReplaced) {
  make({.pool_size = 0});
  const layers::Layer base = layer("base");
  call(base);
  until([&] { return world_.templates_made == 1; });
  EXPECT_EQ(call(base), Path::fork);
  world_.forks_work = false;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(call(base), std::nullopt);
  world_.forks_work = true;
  now_ += std::chrono::seconds(20);
  call(base);
  until([&] { return world_.templates_made == 2; });
  EXPECT_EQ(call(base), Path::fork);
}

TEST_F(TemplatesTest, TheLeastRecentlyUsedTemplateMakesRoom) {
  make({.memory = mib(100)});  // two of those without packages
  for (const char* name : {"a", "b"}) {
    call(layer(name));
    until_full(layer(name));
    now_ += std::chrono::seconds(20);
  }
  call(layer("a"));
  until_full(layer("a"));
  call(layer("c"));
  until_full(layer("c"));
  EXPECT_EQ(world_.made, (std::vector<std::string>{"/layers/a", "/layers/b", "/layers/c"}));
  EXPECT_EQ(call(layer("a")), Path::pool);
  EXPECT_EQ(call(layer("b")), std::nullopt);
  EXPECT_EQ(waiting(layer("b")), 0U);
  until([&] { return true; });
  EXPECT_EQ(world_.made.size(), 3U) << "templates in use do not make room";
}

TEST_F(TemplatesTest, OneTemplateIsMadeAtATimeAndNoneIsForgotten) {
  for (const char* name : {"a", "b", "c"}) call(layer(name));
  for (const char* name : {"a", "b", "c"}) until_full(layer(name));
  EXPECT_EQ(world_.templates_made, 3);
}

TEST_F(TemplatesTest, WhatIsIdleKeepsNothingButTheLastOneUsed) {
  for (const char* name : {"a", "b"}) {
    call(layer(name));
    until_full(layer(name));
  }
  const auto a = templates_->stock_for(layer("a"), RunLimits{}, Weight::heavy);
  const auto b = templates_->stock_for(layer("b"), RunLimits{}, Weight::heavy);
  now_ += std::chrono::seconds(30);
  templates_->tend();
  EXPECT_EQ(a->waiting(), 4U);
  now_ += std::chrono::seconds(31);
  templates_->tend();
  EXPECT_EQ(a->waiting(), 0U);
  EXPECT_EQ(b->waiting(), 1U);
  EXPECT_EQ(call(layer("a")), Path::fork);
  until_full(layer("a"));
}

TEST_F(TemplatesTest, AllPoolsTogetherAreBounded) {
  make({.pool_size = 4, .pool_total = 6});
  for (const char* name : {"a", "b"}) {
    call(layer(name));
    until([&] { return waiting(layer(name)) > 0; });
  }
  until_full(layer("b"));
  EXPECT_LE(waiting(layer("a")) + waiting(layer("b")), 6U);
}

TEST_F(TemplatesTest, LimitsBelongToTheEnvironment) {
  RunLimits small;
  small.sandbox.memory = mib(64);
  RunLimits short_wall;
  short_wall.wall = Milliseconds(1);
  const auto usual = templates_->stock_for(layer("a"), RunLimits{}, Weight::heavy);
  EXPECT_NE(templates_->stock_for(layer("a"), small, Weight::heavy), usual);
  EXPECT_EQ(templates_->stock_for(layer("a"), short_wall, Weight::heavy), usual);
}

TEST_F(TemplatesTest, ALayerIsHeldAsLongAsItsTemplateLives) {
  layers::Layer base = layer("base");
  const std::weak_ptr<const void> lease = base.lease;
  call(base);
  until_full(base);
  base.lease.reset();
  EXPECT_FALSE(lease.expired());
  stop();
  EXPECT_TRUE(lease.expired());
}

}  // namespace
}  // namespace prims::python

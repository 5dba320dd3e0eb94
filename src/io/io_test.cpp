#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <thread>

#include "io/cancellation.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/scope.h"
#include "io/stream.h"
#include "io/wait.h"
#include "io/workers.h"

namespace prims::io {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr auto kSoon = 20ms;
constexpr auto kPlenty = 20s;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  int fds[2];
  EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Kind kind_of(const Result<>& result) {
  return result ? Kind::internal : result.error().kind;
}

Task<> mark(std::vector<std::string>* log, std::string text) {
  log->push_back(std::move(text));
  co_return;
}

TEST(Loop, RunsATaskToItsResult) {
  Loop loop;
  const auto slept = loop.run_until_done(sleep_until(Deadline::after(1ms)));
  EXPECT_TRUE(slept.has_value());
}

TEST(Loop, SpawnedTasksRunAndFailuresDoNotEndTheLoop) {
  Loop loop;
  std::vector<std::string> log;
  auto broken = []() -> Task<> {
    throw std::runtime_error("broken on purpose");
    co_return;
  };
  loop.spawn(broken(), "broken");
  loop.spawn(mark(&log, "one"), "one");
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(log, std::vector<std::string>{"one"});
}

TEST(Loop, PostAndStopWorkFromOtherThreads) {
  Loop loop;
  bool posted = false;
  std::jthread other([&] { loop.post([&] { posted = true; }), loop.post([&] { loop.stop(); }); });
  loop.run();
  EXPECT_TRUE(posted);
}

TEST(Event, WakesAllWaitersAndTimesOut) {
  Loop loop;
  Event event;
  const auto late = loop.run_until_done(event.wait(Deadline::after(kSoon)));
  EXPECT_EQ(kind_of(late), Kind::timed_out);
  loop.post([event] { event.set(); });
  EXPECT_TRUE(loop.run_until_done(event.wait(Deadline::after(kPlenty))).has_value());
  EXPECT_TRUE(loop.run_until_done(event.wait()).has_value());
  event.reset();
  EXPECT_FALSE(event.is_set());
}

struct Kept {
  std::optional<Result<>> result;
  Event ended;
};

Task<> keep_result(Task<Result<>> waiting, Kept* kept) {
  auto ended = co_await std::move(waiting);
  kept->result.emplace(std::move(ended));
  kept->ended.set();
}

TEST(Event, AResetAfterSetDoesNotHideTheWake) {
  Loop loop;
  Event event;
  Kept kept;
  loop.spawn(keep_result(event.wait(), &kept), "waiter");
  loop.post([&] {
    EXPECT_FALSE(kept.result.has_value());
    event.set();
    event.reset();
  });
  ASSERT_TRUE(loop.run_until_done(kept.ended.wait(Deadline::after(kPlenty))).has_value());
  EXPECT_TRUE(kept.result->has_value());
}

Task<> produce(Channel<int>* channel, int count) {
  for (int i = 0; i < count; ++i) {
    [[maybe_unused]] auto sent = co_await channel->send(i);
  }
  channel->close();
}

Task<int> consume(Channel<int>* channel) {
  int sum = 0;
  for (;;) {
    auto item = co_await channel->receive(Deadline::after(kPlenty));
    if (!item) co_return sum;
    sum += *item;
  }
}

TEST(Channel, IsBoundedAndDeliversEverythingBeforeClose) {
  Loop loop;
  Channel<int> channel(2);
  loop.spawn(produce(&channel, 100), "producer");
  EXPECT_EQ(loop.run_until_done(consume(&channel)), 4950);
  EXPECT_FALSE(channel.try_send(1));
  Channel<int> full(1);
  EXPECT_TRUE(full.try_send(1));
  EXPECT_FALSE(full.try_send(2));
}

TEST(Stream, ReadsUntilTheEndAndTimesOut) {
  Loop loop;
  Pipe pipe = make_pipe();
  Stream reader(std::move(pipe.read));
  char buffer[16];
  const auto late = loop.run_until_done(reader.read_some(buffer, Deadline::after(kSoon)));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind, Kind::timed_out);
  ASSERT_EQ(::write(pipe.write.get(), "hello", 5), 5);
  const auto got = loop.run_until_done(reader.read_some(buffer, Deadline::after(kPlenty)));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(std::string_view(buffer, *got), "hello");
  pipe.write.reset();
  EXPECT_EQ(loop.run_until_done(reader.read_some(buffer, Deadline::never())).value(), 0U);
}

Task<std::size_t> count_bytes(Stream* stream) {
  std::size_t total = 0;
  std::vector<char> buffer(65536);
  for (;;) {
    const auto got = co_await stream->read_some(buffer, Deadline::after(kPlenty));
    if (!got || *got == 0) co_return total;
    total += *got;
  }
}

Task<> write_and_close(Stream* stream, std::string data) {
  [[maybe_unused]] auto written = co_await stream->write_all(data, Deadline::after(kPlenty));
  stream->close();
}

TEST(Stream, WritesMoreThanAPipeHolds) {
  Loop loop;
  Pipe pipe = make_pipe();
  Stream reader(std::move(pipe.read));
  Stream writer(std::move(pipe.write));
  loop.spawn(write_and_close(&writer, std::string(3'000'000, 'x')), "writer");
  EXPECT_EQ(loop.run_until_done(count_bytes(&reader)), 3'000'000U);
}

TEST(Stream, AWriteThatNobodyReadsTimesOutAndABrokenPipeIsAnError) {
  Loop loop;
  Pipe pipe = make_pipe();
  Stream writer(std::move(pipe.write));
  const std::string data(1'000'000, 'x');
  EXPECT_EQ(kind_of(loop.run_until_done(writer.write_all(data, Deadline::after(kSoon)))), Kind::timed_out);
  pipe.read.reset();
  const auto broken = loop.run_until_done(writer.write_all("x", Deadline::never()));
  ASSERT_FALSE(broken.has_value());
  EXPECT_THAT(broken.error().message, testing::HasSubstr("Broken pipe"));
}

TEST(Stream, CloseEndsAWaitUnderWay) {
  Loop loop;
  Pipe pipe = make_pipe();
  Stream reader(std::move(pipe.read));
  Kept kept;
  loop.spawn(keep_result(reader.readable(Deadline::after(kPlenty)), &kept), "reader");
  loop.post([&] {
    EXPECT_FALSE(kept.result.has_value());
    reader.close();
  });
  ASSERT_TRUE(loop.run_until_done(kept.ended.wait(Deadline::after(kPlenty))).has_value());
  EXPECT_EQ(kind_of(*kept.result), Kind::cancelled);
}

Task<> read_forever(Stream* stream, const bool* enough) {
  std::vector<char> buffer(4096);
  while (!*enough) {
    [[maybe_unused]] auto got = co_await stream->read_some(buffer, Deadline::never());
  }
}

TEST(Stream, AReaderThatNeverWaitsLeavesOthersTheirTurn) {
  Loop loop;
  Stream zero(UniqueFd(::open("/dev/zero", O_RDONLY | O_CLOEXEC)));
  bool enough = false;
  loop.post([&] { loop.post([&] { enough = true; }); });
  loop.run_until_done(read_forever(&zero, &enough));
  EXPECT_TRUE(enough);
}

TEST(Stream, RegularFilesAndDevNullNeedNoPolling) {
  Loop loop;
  Stream null(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)));
  char buffer[4];
  EXPECT_EQ(loop.run_until_done(null.read_some(buffer, Deadline::never())).value(), 0U);
  Stream file(UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  EXPECT_EQ(loop.run_until_done(file.read_some(buffer, Deadline::never())).value(), 4U);
}

TEST(Wait, DescriptorsStayTheCallersAndMayBeWaitedForTwice) {
  Loop loop;
  Pipe pipe = make_pipe();
  EXPECT_EQ(kind_of(loop.run_until_done(wait_readable(pipe.read.get(), Deadline::after(kSoon)))),
            Kind::timed_out);
  EXPECT_TRUE(loop.run_until_done(wait_writable(pipe.write.get(), Deadline::after(kPlenty))).has_value());
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  EXPECT_TRUE(loop.run_until_done(wait_readable(pipe.read.get(), Deadline::after(kPlenty))).has_value());
  EXPECT_GE(::fcntl(pipe.read.get(), F_GETFD), 0);
}

UniqueFd start_child(int exit_code, int signal) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (signal != 0) ::raise(signal);
    ::_exit(exit_code);
  }
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

TEST(Wait, ProcessesAreReapedWithTheirEnd) {
  Loop loop;
  const UniqueFd exits = start_child(7, 0);
  const auto exited = loop.run_until_done(wait_process(exits.get(), Deadline::after(kPlenty)));
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->exit_code, 7);
  EXPECT_EQ(exited->signal, 0);
  const UniqueFd dies = start_child(0, SIGKILL);
  const auto killed = loop.run_until_done(wait_process(dies.get(), Deadline::after(kPlenty)));
  ASSERT_TRUE(killed.has_value());
  EXPECT_EQ(killed->signal, SIGKILL);
}

TEST(Wait, SignalsArriveAsValues) {
  Loop loop;
  Signals signals(loop.executor(), {SIGTERM, SIGINT});
  ::raise(SIGTERM);
  EXPECT_EQ(loop.run_until_done(signals.next()).value(), SIGTERM);
  ::raise(SIGINT);
  EXPECT_EQ(loop.run_until_done(signals.next()).value(), SIGINT);
}

Task<> wait_then_note(Event event, std::vector<std::string>* log, std::string name) {
  const auto woken = co_await event.wait();
  log->push_back(name + (woken ? " woken" : " cancelled"));
  const auto slept = co_await sleep_until(Deadline::after(1ms));
  log->push_back(name + (slept ? " cleaned up" : " disturbed again"));
}

Task<Result<>> own_children(std::vector<std::string>* log) {
  const Executor executor = co_await this_executor;
  TaskScope scope(executor);
  const Event never;
  scope.spawn(wait_then_note(never, log, "a"), "a");
  scope.spawn(wait_then_note(never, log, "b"), "b");
  auto early = co_await scope.join(Deadline::after(kSoon));
  EXPECT_EQ(kind_of(early), Kind::timed_out);
  scope.cancel();
  co_return co_await scope.join();
}

TEST(TaskScope, CancelsAndJoinsItsChildrenWhoMayCleanUp) {
  Loop loop;
  std::vector<std::string> log;
  EXPECT_TRUE(loop.run_until_done(own_children(&log)).has_value());
  EXPECT_EQ(log, (std::vector<std::string>{"a cancelled", "b cancelled", "a cleaned up", "b cleaned up"}));
}

Task<Result<int>> work_elsewhere(Workers* workers) {
  auto job = [] { return std::this_thread::get_id(); };
  auto where = co_await workers->run(job);
  PRIMS_CO_RETURN_ON_ERROR(where);
  EXPECT_NE(*where, std::this_thread::get_id());
  auto failing = []() -> Result<int> { return fail(Kind::not_found, "nothing there"); };
  co_return co_await workers->run(failing);
}

TEST(Workers, RunJobsElsewhereAndHandResultsBack) {
  Loop loop;
  Workers workers;
  const auto result = loop.run_until_done(work_elsewhere(&workers));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, Kind::not_found);
  auto throwing = []() -> int { throw std::runtime_error("job failed"); };
  EXPECT_THROW((void)loop.run_until_done(workers.run(throwing)), std::runtime_error);
  auto nothing = [] {};
  EXPECT_TRUE(loop.run_until_done(workers.run(nothing)).has_value());
}

TEST(Workers, RefuseWhenTheQueueIsFull) {
  Loop loop;
  Workers workers(0, 1);
  std::vector<std::string> log;
  auto fill = [](Workers* to) -> Task<> {
    auto job = [] {};
    [[maybe_unused]] auto never = co_await to->run(job);
  };
  loop.spawn(fill(&workers), "fill");
  auto job = [] {};
  const auto refused = loop.run_until_done(workers.run(job));
  EXPECT_EQ(kind_of(refused), Kind::exhausted);
}

TEST(Cancellation, CallsTheActionOnceAlsoWhenItComesLate) {
  int calls = 0;
  Cancellation cancellation;
  cancellation.on_request([&] { ++calls; });
  cancellation.request();
  cancellation.request();
  EXPECT_EQ(calls, 1);
  cancellation.on_request([&] { ++calls; });
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace prims::io

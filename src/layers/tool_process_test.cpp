#include "layers/tool_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "io/loop.h"
#include "io/scope.h"
#include "io/stream.h"

namespace prims::layers {
namespace {

using testing::HasSubstr;

const Deadline kSoon = Deadline::after(std::chrono::seconds(60));

ToolCommand shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

TEST(RunTool, BothWaysGiveStatusAndOutput) {
  io::Loop loop;
  const auto command = shell("echo out; echo err >&2; exit 3");
  for (const auto& output :
       {loop.run_until_done(run_tool(command, kSoon)), run_tool_blocking(command, kSoon)}) {
    ASSERT_TRUE(output.has_value()) << output.error().message;
    EXPECT_EQ(output->status, 3);
    EXPECT_EQ(output->out, "out\n");
    EXPECT_EQ(output->err, "err\n");
  }
}

TEST(RunTool, LateProgramsAreEnded) {
  io::Loop loop;
  const auto command = shell("sleep 300");
  const auto waited = loop.run_until_done(run_tool(command, Deadline::after(Milliseconds(50))));
  const auto blocked = run_tool_blocking(command, Deadline::after(Milliseconds(50)));
  for (const auto& output : {waited, blocked}) {
    ASSERT_FALSE(output.has_value());
    EXPECT_EQ(output.error().kind, Kind::timed_out);
    EXPECT_THAT(output.error().message, HasSubstr("did not end in time"));
  }
}

io::Task<> store(ToolCommand command, std::optional<Result<ToolOutput>>* into) {
  auto output = co_await run_tool(std::move(command), Deadline::never());
  into->emplace(std::move(output));
}

/// The group ends with its leader: the pipe that all of it holds reaches its end.
io::Task<Result<std::size_t>> cancel_once_started(ToolCommand command, int pipe,
                                                  std::optional<Result<ToolOutput>>* into) {
  const auto executor = co_await io::this_executor;
  io::TaskScope scope(executor);
  scope.spawn(store(std::move(command), into), "a tool");
  io::Stream marks{UniqueFd(pipe)};
  std::array<char, 16> mark{};
  auto started = co_await marks.read_some(mark, kSoon);
  PRIMS_CO_RETURN_ON_ERROR(std::move(started));
  scope.cancel();
  auto joined = co_await scope.join(kSoon);
  PRIMS_CO_RETURN_ON_ERROR(std::move(joined));
  auto rest = co_await marks.read_some(mark, kSoon);
  co_return rest;
}

TEST(RunTool, CancelledTaskEndsTheWholeGroupAtOnce) {
  io::Loop loop;
  std::string pattern = "/tmp/prims-tool-XXXXXX";
  const std::string directory = ::mkdtemp(pattern.data());
  const auto fifo = directory + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int reading = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::optional<Result<ToolOutput>> output;
  const auto command = shell("exec 3> " + fifo + "; sleep 300 & echo started >&3; wait");
  const auto rest = loop.run_until_done(cancel_once_started(command, reading, &output));
  EXPECT_EQ(rest.value_or(99), 0U) << "the end of the pipe";
  ASSERT_TRUE(output.has_value());
  ASSERT_FALSE(output->has_value());
  EXPECT_EQ(output->error().kind, Kind::cancelled);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace prims::layers

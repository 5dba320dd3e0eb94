#include "python/capture.h"

#include <gtest/gtest.h>

#include <string>

#include "python/running_line.h"

namespace prims::python {
namespace {

Captured capture(Bytes shown, std::string_view text, std::size_t step) {
  Capture capture(shown);
  for (std::size_t i = 0; i < text.size(); i += step) capture.add(text.substr(i, step));
  EXPECT_EQ(capture.total(), text.size());
  return std::move(capture).take();
}

std::string digits(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size()) + " ";
  text.resize(size);
  return text;
}

TEST(Capture, KeepsEverythingThatFits) {
  for (const std::size_t size : {0UL, 1UL, 9UL, 10UL, 99UL, 100UL}) {
    const Captured kept = capture(Bytes{100}, digits(size), 7);
    EXPECT_EQ(kept.head, digits(size));
    EXPECT_TRUE(kept.tail.empty());
    EXPECT_EQ(kept.total_bytes, size);
  }
}

TEST(Capture, KeepsBothEndsOfMore) {
  for (const std::size_t size : {101UL, 150UL, 1000UL, 100000UL}) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{4096}}) {
      const std::string text = digits(size);
      const Captured kept = capture(Bytes{101}, text, step);
      if (size == 101) continue;
      EXPECT_EQ(kept.head, text.substr(0, 50));
      EXPECT_EQ(kept.tail, text.substr(size - 51));
      EXPECT_EQ(kept.total_bytes, size);
    }
  }
}

TEST(Capture, OfNothingKeepsOnlyTheCount) {
  const Captured kept = capture(Bytes{0}, digits(1000), 10);
  EXPECT_TRUE(kept.head.empty());
  EXPECT_TRUE(kept.tail.empty());
  EXPECT_EQ(kept.total_bytes, 1000U);
}

TEST(RunningLine, IsTheInnermostOfTheCodeAsSent) {
  const std::string dump =
      "Current thread 0x00007f (most recent call first):\n"
      "  File \"/usr/lib/python3.11/json/decoder.py\", line 353 in raw_decode\n"
      "  File \"/sandbox/run/main.py\", line 12 in work\n"
      "  File \"/sandbox/run/main.py\", line 20 in <module>\n";
  EXPECT_EQ(running_line(dump, "/sandbox/run/main.py"), 12);
  EXPECT_EQ(running_line(dump, "/sandbox/run/other.py"), std::nullopt);
}

TEST(RunningLine, WaitsForWholeLinesAndSkipsWhatItDoesNotKnow) {
  EXPECT_EQ(running_line("  File \"m.py\", line 1", "m.py"), std::nullopt);
  EXPECT_EQ(running_line("  File \"m.py\", line x in f\n  File \"m.py\", line -3 in f\n"
                         "  File \"m.py\", line 99999999999999 in f\n\n\xff\n  File \"m.py\", line 4 in f\n",
                         "m.py"),
            4);
  EXPECT_EQ(running_line("", "m.py"), std::nullopt);
}

}  // namespace
}  // namespace prims::python

#include "cli/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prims::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Explanation, AProgramThatEndedByItselfGetsOnlyItsHint) {
  EXPECT_THAT(explanation({{"status", "ok"}, {"hint", "Ran on plain Python."}}),
              ElementsAre("hint: Ran on plain Python."));
  EXPECT_THAT(explanation({{"status", "error"}, {"message", "ValueError: x"}, {"hint", "Try y."}}),
              ElementsAre("hint: Try y."));
  EXPECT_THAT(explanation({{"status", "ok"}}), IsEmpty());
}

TEST(Explanation, AProgramThatWasEndedOrNeverRanGetsTheReasonToo) {
  EXPECT_THAT(explanation({{"status", "timeout"}, {"message", "It took too long."}}),
              ElementsAre("It took too long."));
  EXPECT_THAT(
      explanation({{"status", "sandbox_unavailable"}, {"message", "No Python."}, {"hint", "Set python."}}),
      ElementsAre("No Python.", "hint: Set python."));
}

}  // namespace
}  // namespace prims::cli

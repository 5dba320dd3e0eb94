#include "server/admission.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"

namespace prims::server {
namespace {

/// One call of the test, by its number.
struct Seen {
  std::vector<int> ran;
  std::vector<int> refused;
  std::vector<int> cancelled;
  std::map<int, io::Event> release;
};

io::Task<> call(Admission* admission, std::string caller, std::shared_ptr<io::Cancellation> cancellation,
                Seen* seen, int number) {
  auto turn = co_await admission->take(std::move(caller), std::move(cancellation));
  if (!turn) {
    (turn.error().kind == Kind::exhausted ? seen->refused : seen->cancelled).push_back(number);
    co_return;
  }
  seen->ran.push_back(number);
  auto released = co_await seen->release[number].wait();
}

io::Task<> settle() {
  for (int i = 0; i < 20; ++i) {
    auto passed = co_await io::sleep_until(Deadline::after(Milliseconds(0)));
  }
}

class AdmissionTest : public testing::Test {
 protected:
  ~AdmissionTest() override {
    for (auto& [number, event] : seen_.release) event.set();
    for (int number = 0; number < 100; ++number) seen_.release[number].set();
    EXPECT_TRUE(loop_.run_until_done(scope_.join()));
  }

  std::shared_ptr<io::Cancellation> ask(int number, const std::string& caller) {
    auto cancellation = std::make_shared<io::Cancellation>();
    scope_.spawn(call(&admission_, caller, cancellation, &seen_, number), "call");
    loop_.run_until_done(settle());
    return cancellation;
  }
  void end(int number) {
    seen_.release[number].set();
    loop_.run_until_done(settle());
  }

  Clock::time_point now_ = Clock::now();
  Admission admission_{1, 4, [this] { return now_; }};
  Seen seen_;
  io::Loop loop_;
  io::TaskScope scope_{loop_.executor()};
};

TEST_F(AdmissionTest, OneCallerIsServedInOrderAndBounded) {
  std::vector<std::shared_ptr<io::Cancellation>> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(ask(i, "a"));
  EXPECT_EQ(seen_.ran, std::vector{0});
  EXPECT_EQ(seen_.refused, std::vector{5});
  calls[1]->request();
  loop_.run_until_done(settle());
  EXPECT_EQ(seen_.cancelled, std::vector{1});
  for (int i : {0, 2, 3}) end(i);
  EXPECT_EQ(seen_.ran, (std::vector{0, 2, 3, 4}));
}

TEST_F(AdmissionTest, CallersTakeTurns) {
  ask(0, "a");
  for (int i : {1, 2, 3}) ask(i, "a");
  ask(11, "b");
  for (int i : {0, 1, 11, 2}) end(i);
  EXPECT_EQ(seen_.ran, (std::vector{0, 1, 11, 2, 3}));
}

TEST_F(AdmissionTest, AFullLineHasRoomForACallerWithLess) {
  for (int i = 0; i < 5; ++i) ask(i, "a");
  ask(11, "b");
  EXPECT_EQ(seen_.refused, std::vector{4});
  ask(12, "b");
  EXPECT_EQ(seen_.refused, (std::vector{4, 3}));
  ask(13, "b");
  EXPECT_EQ(seen_.refused, (std::vector{4, 3, 13})) << "both have as many by now";
  ask(5, "a");
  EXPECT_EQ(seen_.refused.back(), 5);
}

TEST_F(AdmissionTest, ATurnGivenToOneWhoHasGoneIsPassedOn) {
  ask(0, "a");
  const auto second = ask(1, "a");
  ask(2, "a");
  second->request();
  seen_.release[0].set();
  loop_.run_until_done(settle());
  EXPECT_EQ(seen_.ran, (std::vector{0, 2}));
}

TEST_F(AdmissionTest, TheRetryTimeGrowsWithTheLineAndItsPace) {
  EXPECT_EQ(admission_.retry_after(), Milliseconds(1000));
  for (int i = 0; i < 40; ++i) {
    ask(i, "a");
    now_ += std::chrono::seconds(5);
    end(i);
  }
  EXPECT_NEAR(static_cast<double>(admission_.retry_after().count()), 5000, 200);
  for (int i = 50; i < 55; ++i) ask(i, "a");
  EXPECT_NEAR(static_cast<double>(admission_.retry_after().count()), 25'000, 1000);
  now_ += std::chrono::hours(1);
  end(50);
  EXPECT_EQ(admission_.retry_after(), Milliseconds(60'000));
}

}  // namespace
}  // namespace prims::server

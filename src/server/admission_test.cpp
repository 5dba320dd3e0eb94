#include "server/admission.h"

#include <gtest/gtest.h>

#include <vector>

#include "io/loop.h"
#include "io/scope.h"
#include "io/wait.h"

namespace prims::server {
namespace {

io::Task<> wait_turn(Admission* admission, std::shared_ptr<io::Cancellation> cancellation,
                     std::vector<int>* order, int name, io::Event release) {
  auto turn = co_await admission->take(cancellation);
  if (!turn) {
    order->push_back(turn.error().kind == Kind::exhausted ? -1000 - name : -name);
    co_return;
  }
  order->push_back(name);
  auto released = co_await release.wait();
}

io::Task<> settle() {
  for (int i = 0; i < 20; ++i) {
    auto passed = co_await io::sleep_until(Deadline::after(Milliseconds(0)));
  }
}

TEST(Admission, ServesInOrderAndIsBounded) {
  io::Loop loop;
  Admission admission(1, 2);
  io::TaskScope scope(loop.executor());
  std::vector<int> order;
  std::vector<io::Event> release(5);
  std::vector<std::shared_ptr<io::Cancellation>> cancellations;
  for (int i = 1; i <= 4; ++i) {
    cancellations.push_back(std::make_shared<io::Cancellation>());
    scope.spawn(wait_turn(&admission, cancellations.back(), &order, i, release[static_cast<std::size_t>(i)]),
                "call");
  }
  loop.run_until_done(settle());
  EXPECT_EQ(order, (std::vector<int>{1, -1004}));  // the fourth finds the line full
  cancellations[1]->request();                     // the second gives up while it waits
  loop.run_until_done(settle());
  EXPECT_EQ(order.back(), -2);
  release[1].set();
  loop.run_until_done(settle());
  EXPECT_EQ(order.back(), 3);
  release[3].set();
  auto joined = loop.run_until_done(scope.join());
  EXPECT_TRUE(joined);
}

}  // namespace
}  // namespace prims::server

#include "engine/verify.hpp"

#include <gtest/gtest.h>

#include "engine/watchdog/watchdog.hpp"
#include "harness/profile/plan_builder.hpp"

namespace longhaul::engine {
namespace {

/// Two blocks of rank 0, a message after the first, a block of rank 1 after it.
class VerifyOrder : public ::testing::Test {
protected:
  VerifyOrder() {
    first_ = builder_.block(0, Duration{10}, MicrobatchId{0});
    second_ = builder_.block(0, Duration{10}, MicrobatchId{1});
    message_ = builder_.message(0, 1, Duration{2}, Duration{3}, Bytes{1});
    builder_.after(message_.send, first_);
    third_ = builder_.block(1, Duration{10}, MicrobatchId{0});
    builder_.after(third_, message_.recv);
    plan_ = builder_.build();
    times_.resize(plan_.ops.size());
    set(first_, 0, 10);
    set(second_, 10, 20);
    set(message_.send, 10, 12);
    set(message_.recv, 10, 15);
    set(third_, 15, 25);
  }
  void set(harness::PlanBuilder::Handle op, int start, int end) {
    times_[index(builder_.id(op))].start = Duration{start};
    times_[index(builder_.id(op))].end = Duration{end};
  }

  harness::PlanBuilder builder_{"verify", 2};
  harness::PlanBuilder::Handle first_{}, second_{}, third_{};
  harness::PlanBuilder::Message message_;
  Plan plan_;
  OpTimes times_;
};

TEST_F(VerifyOrder, CountsBlocksThatRanAsTheyShould) {
  EXPECT_EQ(verify_order(plan_, Rank{0}, times_).blocks, 2);
  EXPECT_EQ(verify_order(plan_, Rank{0}, times_).wrong(), 0);
  EXPECT_EQ(verify_order(plan_, Rank{1}, times_).blocks, 1);
}

TEST_F(VerifyOrder, SeesBlocksThatOverlap) {
  set(second_, 9, 20);
  EXPECT_EQ(verify_order(plan_, Rank{0}, times_).out_of_order, 1);
}

TEST_F(VerifyOrder, SeesABlockBeforeItsInput) {
  set(third_, 14, 25);
  EXPECT_EQ(verify_order(plan_, Rank{1}, times_).out_of_order, 1);
  EXPECT_EQ(verify_order(plan_, Rank{1}, times_).blocks, 0);
}

TEST_F(VerifyOrder, SeesAnEndBeforeItsStart) {
  set(message_.send, 12, 11);
  EXPECT_EQ(verify_order(plan_, Rank{0}, times_).out_of_order, 1);
}

TEST_F(VerifyOrder, LongestWaitSpansStartAndEndOfTheIteration) {
  EXPECT_EQ(longest_wait(plan_, times_, Rank{0}), Duration{10});
  EXPECT_EQ(longest_wait(plan_, times_, Rank{1}), Duration{10});
  set(third_, 15, 99);
  EXPECT_EQ(longest_wait(plan_, times_, Rank{0}), Duration{79}) << "from its last end to the last";
}

TEST(Lateness, CountsBlocksAndKeepsTheLongest) {
  Lateness late;
  late.add(Duration{30});
  late.add(Duration{10});
  late.add(Duration{-5});  // seen before it was due
  Lateness all{2, Duration{7}, Duration{6}};
  all += late;
  EXPECT_EQ(all.blocks, 5);
  EXPECT_EQ(all.total, Duration{47});
  EXPECT_EQ(all.longest, Duration{30});
}

}  // namespace
}  // namespace longhaul::engine

#include "engine/credit/shadow_time.hpp"

#include <gtest/gtest.h>

#include "engine/options.hpp"

namespace longhaul::engine {
namespace {

using namespace std::chrono_literals;

// By hand: seen at 10 with a lag of 5, and at 12 with none. Without credit it would be 15.
TEST(ShadowTime, WaitsForTheLastOfItsCausesByEitherClock) {
  ShadowTime causes;
  causes.raise(10ns, 5ns);
  EXPECT_EQ(causes.lag(), 5ns);
  causes.raise(12ns, 0ns);
  EXPECT_EQ(causes.seen, 12ns);
  EXPECT_EQ(causes.shadow, 15ns);
  EXPECT_EQ(causes.lag(), 3ns);
  causes.raise(ShadowTime{20ns, 20ns});
  EXPECT_EQ(causes.lag(), 0ns) << "what came later hides it";
}

TEST(CreditUse, CountsOpsAndKeepsTheLargest) {
  CreditUse use;
  for (const Duration credit : {0ns, 7ns, 0ns, 3ns}) use.add(credit);
  use += CreditUse{1, 1, 9ns, 9ns};
  EXPECT_EQ(use.ops, 5);
  EXPECT_EQ(use.credited, 3);
  EXPECT_EQ(use.total, 19ns);
  EXPECT_EQ(use.largest, 9ns);
}

TEST(MostCredit, IsTwoPercentOfAnOp) {
  EXPECT_EQ(most_credit(1ms, 10ms), 200us);
  EXPECT_EQ(most_credit(1ms, 100ms), 1ms);
  EXPECT_EQ(most_credit(0ns, 100ms), 0ns);
  EXPECT_EQ(most_credit(1ms, 0ns), 0ns);
}

}  // namespace
}  // namespace longhaul::engine

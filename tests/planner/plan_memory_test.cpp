#include "planner/plan_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/plans.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::planner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// No plan takes less: what is refused could not have been simulated.
TEST(PlanMemory, IsAtMostThatOfAPlan) {
  for (const int stages : {1, 2, 5}) {
    for (const char* name : {"1f1b", "gpipe", "zb-h1"}) {
      const Scenario scenario = uniform_scenario(stages, 7);
      const Plan plan = plan::lower(schedule::generate(name, scenario), scenario);
      const std::size_t taken =
          plan.ops.size() * (sizeof(Op) + sizeof(OpTime) + sizeof(TimelineRow) + sizeof(Block));
      EXPECT_LE(least_plan_memory(scenario).count(), static_cast<std::int64_t>(taken))
          << name << " on " << stages;
      EXPECT_GE(least_plan_memory(scenario).count(), static_cast<std::int64_t>(taken / 3));
    }
  }
}

TEST(PlanMemory, TooManyMicrobatchesAreRefusedWithTheBytesThatTheyNeed) {
  Scenario scenario = uniform_scenario(8, 1 << 10);
  const Bytes needed = least_plan_memory(scenario);
  EXPECT_NO_THROW(require_plan_memory(scenario, needed));
  scenario.parallel.microbatches = 1 << 24;
  EXPECT_EQ(least_plan_memory(scenario).count(), needed.count() << 14);
  EXPECT_THAT([&] { require_plan_memory(scenario, needed); },
              ThrowsMessage<Error>(AllOf(HasSubstr("parallel.microbatches = 16777216 on 8 ranks "
                                                   "takes at least "),
                                         HasSubstr(" GiB of memory"))));
}

TEST(PlanMemory, SomeIsFreeHere) {
  EXPECT_GT(free_memory().count(), 1 << 20);
  EXPECT_LT(free_memory().count(), std::int64_t{1} << 60);
}

}  // namespace
}  // namespace longhaul::planner

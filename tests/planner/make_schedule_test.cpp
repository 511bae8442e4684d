#include "planner/make_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::planner {
namespace {

TEST(MakeSchedule, GeneratesByName) {
  const Scenario scenario = uniform_scenario(4, 8);
  const ScheduleResult made = make_schedule("zb-h1", scenario);
  EXPECT_EQ(made.schedule, schedule::generate("zb-h1", scenario));
  EXPECT_FALSE(made.found);
  EXPECT_THROW((void)make_schedule("zb-h9", scenario), Error);
}

TEST(MakeSchedule, BestIsNoWorseThanWhatItChoseFrom) {
  const Scenario scenario = spread(uniform_scenario(4, 8), 2, Duration{100}, Duration{0});
  PlannerOptions options;
  options.search.moves = 200;
  options.search.threads = 1;
  const ScheduleResult made = make_schedule("best", scenario, options);
  EXPECT_EQ(made.schedule.name, "best");
  ASSERT_TRUE(made.found);
  for (const Candidate& candidate : made.found->candidates.fitting)
    EXPECT_LE(made.found->makespan, candidate.makespan) << candidate.schedule.name;
  EXPECT_EQ(make_schedule("best", scenario, options).schedule, made.schedule) << "repeatable";
}

}  // namespace
}  // namespace longhaul::planner

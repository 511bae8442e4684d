#include "planner/make_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/bounds/bounds.hpp"
#include "planner/orders/order_problem.hpp"
#include "planner/search/makespan.hpp"
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

Scenario slowed_by_messages(int microbatches = 8) {
  Scenario scenario = spread(uniform_scenario(4, microbatches), 2, Duration{50}, Duration{40});
  scenario.overlap = {1.1, 1.2, 2};
  return scenario;
}

// Its quick times know blocks of one length: it asks the simulator where that is not so.
TEST(MakeSchedule, BestKnowsWhatMessagesCostBlocks) {
  const Scenario scenario = slowed_by_messages();
  PlannerOptions options;
  options.search.moves = 3000;
  options.search.threads = 1;
  const ScheduleResult made = make_schedule("best", scenario, options);
  EXPECT_EQ(made.found->makespan, makespan_of(made.schedule, scenario));
  for (const Candidate& candidate : made.found->candidates.fitting) {
    EXPECT_EQ(candidate.makespan, makespan_of(candidate.schedule, scenario));
    EXPECT_LE(made.found->makespan, candidate.makespan) << candidate.schedule.name;
    EXPECT_LE(lower_bound(candidate.schedule, scenario).lower_bound, candidate.makespan);
  }
  Scenario steady = scenario;
  steady.overlap = {};
  EXPECT_GT(made.found->makespan, makespan_of(made.schedule, steady));
  EXPECT_LE(made.found->makespan,
            makespan_of(make_schedule("best", steady, options).schedule, scenario));
  EXPECT_FALSE((OrderProblem{made.schedule, scenario}.is_exact()));
  EXPECT_TRUE((OrderProblem{made.schedule, steady}.is_exact()));
}

TEST(MakeSchedule, PipelinesThatShareTheWanAreSimulatedWithIt) {
  Scenario scenario = slowed_by_messages(4);
  scenario.parallel.replicas = 2;
  scenario.parallel.cell = 2;
  scenario.placement.insert(scenario.placement.end(), scenario.placement.begin(),
                            scenario.placement.end());
  const ScheduleResult made = make_schedule("atlas+1f1b", scenario);
  EXPECT_GT(made.schedule.cell, 1);
  Scenario steady = scenario;
  steady.overlap = {};
  EXPECT_GT(makespan_of(made.schedule, scenario), makespan_of(made.schedule, steady));
  const Result<ScheduleResult> searched = try_make(parse_schedule("atlas+best"), scenario, {});
  ASSERT_FALSE(searched);
  EXPECT_THAT(searched.refusal().reason, ::testing::StartsWith("atlas+best searches with blocks"));
}

TEST(MakeSchedule, RefusesSolversWhoseModelDoesNotKnowIt) {
  for (const char* name : {"cross-ud-opt", "cross-wave-opt"}) {
    const Result<ScheduleResult> made = try_make(parse_schedule(name), slowed_by_messages(), {});
    ASSERT_FALSE(made);
    EXPECT_THAT(made.refusal().reason,
                ::testing::AllOf(::testing::StartsWith(name), ::testing::HasSubstr("[overlap]")));
  }
}

}  // namespace
}  // namespace longhaul::planner

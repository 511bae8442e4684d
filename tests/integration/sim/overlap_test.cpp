// Blocks that slow beside messages ([overlap]), from the scenario to the times.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/random_scenario.hpp"
#include "sim/simulate.hpp"
#include "support/plans.hpp"

namespace longhaul {
namespace {

using namespace std::chrono_literals;

Duration makespan_of(const OpTimes& times) { return std::ranges::max(times, {}, &OpTime::end).end; }

/// GPipe on two sites, blocks of 10 ms, messages of 4 ms that take 1 ms more to arrive.
Scenario two_sites() { return spread(uniform_scenario(2, 2, 10ms), 2, 1ms, 4ms); }

// Stage 0 runs F(0) up to 10 and sends its result until 14; F(1), which begins at 10, gets 2 ms
// done meanwhile and ends at 22. Stage 1 has its input at 15; it is over at 22 but for 3 ms, when
// the message of F(1) begins: 2 ms are done when that ends at 26, and it ends at 27.
TEST(OverlapOfAScenario, SlowsBothRanksOfAMessage) {
  Scenario scenario = two_sites();
  scenario.overlap.wan = 2;
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const OpTimes times = sim::simulate(plan);
  const auto forward = [&](int rank, int microbatch) {
    return times[index(testing::find(plan, rank, OpKind::compute, BlockKind::F, microbatch))];
  };
  EXPECT_EQ(forward(0, 0).end, 10ms);
  EXPECT_EQ(forward(0, 1).start, 10ms);
  EXPECT_EQ(forward(0, 1).end, 22ms);
  EXPECT_EQ(forward(1, 0).start, 15ms);
  EXPECT_EQ(forward(1, 0).end, 27ms);
}

TEST(OverlapOfAScenario, OtherLevelsDoNotSlowIt) {
  Scenario scenario = two_sites();
  const auto schedule = schedule::generate("zbv", scenario);
  const Duration steady = makespan_of(sim::simulate(plan::lower(schedule, scenario)));
  scenario.overlap = {3, 3, 1};
  EXPECT_EQ(makespan_of(sim::simulate(plan::lower(schedule, scenario))), steady);
  scenario.overlap = {1, 1, 3};
  EXPECT_GT(makespan_of(sim::simulate(plan::lower(schedule, scenario))), steady);
}

/// Each ordered pair of devices has its link to itself: what ends later makes nothing earlier.
TEST(OverlapOfAScenario, MakesNoOpEarlier) {
  int slower = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Scenario scenario = test::random_scenario(seed);
    for (Link& link : scenario.links) {
      link.sharing = Sharing::pair;
      link.aggregate = Bandwidth::unlimited();
    }
    scenario.nodes.clear();
    for (const char* name : {"1f1b", "zb-h1", "zbv", "cross-ud"}) {
      SCOPED_TRACE(name);
      const auto schedule = schedule::try_generate(*schedule::find_generator(name), scenario);
      if (!schedule) continue;
      Scenario slow = scenario;
      slow.overlap = {1.25, 1.5, 2.75};
      const auto plan = plan::try_lower(*schedule, scenario);
      if (!plan) continue;
      const OpTimes steady = sim::simulate(*plan);
      const OpTimes slowed = sim::simulate(plan::lower(*schedule, slow));
      bool ordered = true;
      for (std::size_t i = 0; i < steady.size(); ++i)
        ordered = ordered && slowed[i].start >= steady[i].start && slowed[i].end >= steady[i].end;
      EXPECT_TRUE(ordered);
      slower += makespan_of(slowed) > makespan_of(steady) ? 1 : 0;
    }
  }
  EXPECT_GT(slower, 60);
}

/// A block of 10 ms is operators of 4, 1 and 5 ms.
Scenario with_operators_below(Scenario scenario) {
  auto all = std::make_shared<std::vector<Operator>>();
  for (int stage = 0; stage < scenario.parallel.stages; ++stage)
    for (const auto& [name, time] : {std::pair{"a", 4ms}, {"b", 1ms}, {"c", 5ms}})
      all->push_back({name, OperatorKind::matmul, -1, Bytes{}, time, time, time, time});
  scenario.operators = {all, true};
  return scenario;
}

// F(1) of stage 0 runs from 10 on, at half its speed until 14.
TEST(OverlapOfAScenario, OperatorsHaveTimesOfTheirOwn) {
  Scenario scenario = with_operators_below(two_sites());
  scenario.overlap.wan = 2;
  const auto schedule = schedule::generate("gpipe", scenario);
  const Plan plan = plan::lower_at(Granularity::operators, schedule, scenario);
  const OpTimes times = sim::simulate(plan);
  std::vector<Duration> ends;
  for (std::uint32_t i = 0; i < plan.lanes.front().count; ++i) ends.push_back(times[i].end);
  ends.resize(6);
  EXPECT_EQ(ends, (std::vector<Duration>{4ms, 5ms, 10ms, 16ms, 17ms, 22ms}));
}

// The end of each operator is a whole number of nanoseconds: so much may add up, and no more.
TEST(OverlapOfAScenario, BothGranularitiesDifferByRoundingAlone) {
  Scenario scenario = with_operators_below(two_sites());
  for (const double slowdown : {1.3, 1.7, 2.0}) {
    scenario.overlap.wan = slowdown;
    for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
      const auto schedule = schedule::generate(name, scenario);
      const Plan blocks =
          plan::with_operators(plan::lower(schedule, scenario), schedule, scenario).or_throw();
      const Plan inside = plan::expand(blocks);
      const Duration whole = makespan_of(sim::simulate(blocks));
      const Duration cut = makespan_of(sim::simulate(inside));
      EXPECT_LE(std::chrono::abs(cut - whole).count(), std::ssize(inside.ops));
      if (slowdown == 2.0) {
        EXPECT_EQ(cut, whole) << "halves of these are whole";
      }
    }
  }
}

}  // namespace
}  // namespace longhaul

#include "support/bidirectional.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/evaluator.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

Duration end_of_last(const OpTimes& times) {
  Duration end{};
  for (const OpTime& time : times) end = std::max(end, time.end);
  return end;
}

TEST(SimulateBidirectional, AgreesWithTheEvaluator) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random{seed};
    const int devices = static_cast<int>(random.between(1, 7));
    const int microbatches = static_cast<int>(random.between(1, 12));
    Scenario scenario = uniform_scenario(devices, microbatches);
    scenario.parallel.gradient_sync = GradientSync::none;
    for (auto* times : {&scenario.costs.forward, &scenario.costs.dgrad, &scenario.costs.wgrad}) {
      for (Duration& time : *times) time = Duration{random.between(1, 300)};
    }
    scenario = spread(scenario, static_cast<int>(random.between(1, std::min(devices, 3))),
                      Duration{random.between(0, 500)}, Duration{});
    const Schedule schedule = testing::bidirectional_gpipe(devices, microbatches);
    const auto expected = test::evaluate(schedule, scenario);
    ASSERT_TRUE(expected);
    ASSERT_EQ(end_of_last(sim::simulate(plan::lower(schedule, scenario))), expected->makespan)
        << seed;
    EXPECT_NO_THROW((void)sim::simulate(plan::lower(schedule, scenario, Arrangement::grouped)))
        << seed;
  }
}

TEST(SimulateBidirectional, TheSumOfTheCopiesComesLast) {
  // P = 2, M = 2, F = D = W = 100, messages 50 + 100. On both devices: F ends at 100, the other
  // copy's F runs 250..350, its D ..450, its W ..550; the gradient arrives at 600, D ..700, W
  // ..800. An all-reduce moves 4 MiB at 50 ns each twice, with a latency: 600.
  Scenario scenario = spread(uniform_scenario(2, 2), 2, Duration{100}, Duration{50});
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  const Plan plan = plan::lower(testing::bidirectional_gpipe(2, 2), scenario);
  const OpTimes times = sim::simulate(plan);
  const auto over = [&](std::size_t group) {
    Duration end{};
    for (const OpId receive : plan.stepped[group].receives)
      end = std::max(end, times[index(receive)].end);
    return end;
  };
  EXPECT_EQ(over(0), Duration{550 + 600});
  EXPECT_EQ(over(1), Duration{1150 + 600});  // one after the other on the ranks
  EXPECT_EQ(end_of_last(times), Duration{1750});
}

}  // namespace
}  // namespace longhaul

#include "plan/rewrite/repeated.hpp"

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::plan {
namespace {

/// Two replicas over two datacenters, whose gradients are summed.
Scenario scenario_of(GradientSync sync) {
  Scenario scenario = uniform_scenario(4, 5, 100ns);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = sync;
  return spread(std::move(scenario), 2, 70ns, 30ns);
}

TEST(Repeated, BeginsEachIterationWhenTheOneBeforeIsOver) {
  for (const GradientSync sync :
       {GradientSync::none, GradientSync::all_reduce, GradientSync::zero1})
    for (const char* name : {"gpipe", "1f1b", "zb-h1", "zbv"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, to_string(sync)));
      const Scenario scenario = scenario_of(sync);
      const Plan once = lower(schedule::generate(name, scenario), scenario);
      const Plan thrice = repeated(once, 3);
      ASSERT_EQ(thrice.ops.size(), 3 * once.ops.size());
      const OpTimes alone = sim::simulate(once), all = sim::simulate(thrice);
      const Duration period = std::ranges::max(alone, {}, &OpTime::end).end;
      const RepeatedIds ids{once, 3};
      int other = 0;
      for (std::size_t i = 0; i < alone.size(); ++i)
        for (int k = 0; k < 3; ++k) {
          const OpTime& time = all[index(ids.of(OpId{static_cast<std::uint32_t>(i)}, k))];
          other += time.start != alone[i].start + k * period;
          other += time.end != alone[i].end + k * period;
        }
      EXPECT_EQ(other, 0);
    }
}

TEST(Repeated, OnceIsThePlanItself) {
  const Scenario scenario = scenario_of(GradientSync::none);
  const Plan once = lower(schedule::generate("1f1b", scenario), scenario);
  EXPECT_EQ(repeated(once, 1).ops, once.ops);
}

TEST(Repeated, RefusesAnIterationsOwnTimes) {
  const Scenario scenario = scenario_of(GradientSync::none);
  Plan once = lower(schedule::generate("1f1b", scenario), scenario);
  once.extras.windows.push_back({OpId{0}, 10ns, 20ns});
  EXPECT_THROW((void)repeated(once, 2), Error);
}

}  // namespace
}  // namespace longhaul::plan

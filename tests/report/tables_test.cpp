#include "report/tables.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/random_schedules.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::report {
namespace {

// Schedules as a file may hold them: made for a scenario with another setting of recomputation and
// another budget.
TEST(BoundTable, NoGapIsBelowZeroWhateverTheScheduleWasMadeFor) {
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random{seed};
    const Scenario scenario = test::random_scenario(random);
    for (const bool recompute : {false, true}) {
      Scenario origin = scenario;
      origin.memory.recompute = recompute;
      origin.memory.budget = 1.0 + 0.5 * static_cast<double>(random.between(0, 4));
      for (const schedule::Generator& generator : schedule::generators()) {
        Schedule schedule;
        Duration makespan{};
        try {
          schedule = schedule::generate(generator.name, origin);
          makespan = planner::makespan_of(schedule, scenario);
        } catch (const Error&) {
          continue;  // not defined on this scenario, or a link is missing
        }
        const planner::Bound bound = bound_of(schedule, scenario);
        ASSERT_GE(planner::gap(makespan, bound), 0)
            << "seed " << seed << " " << generator.name << " " << recompute << ": " << bound.reason;
        ++held;
      }
    }
  }
  EXPECT_GT(held, 1000);
}

}  // namespace
}  // namespace longhaul::report

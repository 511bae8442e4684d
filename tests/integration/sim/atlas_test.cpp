// Varuna's and Atlas' schedules in the simulator, on the plan that ranks execute and on the pooled
// one of searches: they run, and no later than their generator's timetable says.
#include "schedule/generators/cell/atlas.hpp"

#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/figure6.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/random_cells.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

constexpr std::uint64_t kCellInstances = 150;
constexpr const char* kNames[] = {"varuna", "varuna-fill", "atlas", "atlas-timed", "atlas-even"};

Duration makespan(const Plan& plan) {
  Duration last{};
  for (const OpTime& time : sim::simulate(plan)) last = std::max(last, time.end);
  return last;
}

TEST(Figure6, SimulatedSlotsAreTheTimetables) {
  const Scenario scenario = test::figure6();
  for (const char* name : kNames) {
    const Schedule schedule = schedule::generate(name, scenario);
    const Duration end = schedule::timetable_of(name, scenario).end;
    EXPECT_EQ(makespan(plan::lower(schedule, scenario)), end) << name;
    EXPECT_EQ(makespan(plan::lower_pooled(schedule, scenario)), end) << name;
  }
}

TEST(EveryCell, RunsNoLaterThanItsTimetable) {
  for (std::uint64_t seed = 0; seed < kCellInstances; ++seed) {
    Scenario scenario = test::random_cells(seed);
    for (NodeInterfaces& nodes : scenario.nodes) nodes.internal = Bandwidth::unlimited();
    if (test::shares_an_interface(scenario)) continue;
    for (const char* name : kNames) {
      SCOPED_TRACE(::testing::Message() << name << ", seed " << seed);
      const Schedule schedule = schedule::generate(name, scenario);
      const Duration end = schedule::timetable_of(name, scenario).end;
      EXPECT_LE(makespan(plan::lower(schedule, scenario)), end);
      EXPECT_LE(makespan(plan::lower_pooled(schedule, scenario)), end);
    }
  }
}

TEST(EveryCell, RunsWhereItsMessagesMeetOthers) {
  for (std::uint64_t seed = 0; seed < kCellInstances; ++seed) {
    const Scenario scenario = test::random_cells(seed);
    if (!test::is_slow_inside(scenario) && !test::shares_an_interface(scenario)) continue;
    for (const char* name : kNames) {
      SCOPED_TRACE(::testing::Message() << name << ", seed " << seed);
      const Schedule schedule = schedule::generate(name, scenario);
      EXPECT_GT(makespan(plan::lower(schedule, scenario)), Duration::zero());
      EXPECT_GT(makespan(plan::lower_pooled(schedule, scenario)), Duration::zero());
    }
  }
}

}  // namespace
}  // namespace longhaul

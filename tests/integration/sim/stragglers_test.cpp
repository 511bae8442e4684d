// A slow device of a DP-cell: the schedule is timed anew, its order of blocks and turns is kept
// (Atlas section 4.4).
#include <algorithm>

#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/cells.hpp"

namespace longhaul {
namespace {

using testing::in_cells;

constexpr std::size_t kSlow = 1;

Scenario three_pipelines() {
  Scenario scenario = uniform_scenario(4, 6);
  scenario.parallel.replicas = scenario.parallel.cell.emplace(3);
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario = spread(scenario, 2, Duration{70}, Duration{0});
  for (Link& link : scenario.links) link.bandwidth = 8_Gbps;
  for (Bytes& message : scenario.costs.message) message = Bytes{240};
  scenario.run.stragglers.assign(4, 1.0);
  scenario.run.stragglers[kSlow] = 1.5;
  return scenario;
}

/// In cells of three; atlas makes its own turns.
Schedule in_cells_of_three(const std::string& name, const Scenario& scenario) {
  const Schedule schedule = schedule::generate(name, scenario);
  return schedule.cell > 1 ? schedule : testing::in_cells(schedule, scenario, 3);
}

Duration makespan(const OpTimes& times) {
  return std::ranges::max_element(times, {}, &OpTime::end)->end;
}

/// The sends of one lane in the order in which they started.
std::vector<std::size_t> order_of(const Lane& lane, const OpTimes& times) {
  std::vector<std::size_t> order;
  for (std::uint32_t i = 0; i < lane.count; ++i) order.push_back(index(lane.first) + i);
  std::ranges::stable_sort(order, {}, [&](std::size_t op) { return times[op].start; });
  return order;
}

class Stragglers : public ::testing::TestWithParam<const char*> {};

TEST_P(Stragglers, AreAbsorbedByTimingTheScheduleAnew) {
  const Scenario scenario = three_pipelines();
  const Schedule schedule = in_cells_of_three(GetParam(), scenario);
  const Plan plan = plan::lower(schedule, scenario);
  const Plan slow = plan::with_stragglers(plan, scenario.run);
  const OpTimes planned = sim::simulate(plan);
  const OpTimes straggling = sim::simulate(slow);
  EXPECT_GT(makespan(straggling), makespan(planned));
  EXPECT_LE(makespan(straggling), makespan(planned) * 3 / 2);
  for (const Lane& lane : plan.lanes)
    EXPECT_EQ(order_of(lane, straggling), order_of(lane, planned)) << lane.name;
}

TEST_P(Stragglers, TakeWhatAScenarioWithTheirTimesTakes) {
  const Scenario scenario = three_pipelines();
  const Schedule schedule = in_cells_of_three(GetParam(), scenario);
  Scenario slow = scenario;
  for (auto times : {&Costs::forward, &Costs::backward, &Costs::dgrad, &Costs::wgrad})
    (slow.costs.*times)[kSlow] = scaled((slow.costs.*times)[kSlow], 1.5);
  const OpTimes straggling =
      sim::simulate(plan::with_stragglers(plan::lower(schedule, scenario), scenario.run));
  const OpTimes expected = sim::simulate(plan::lower(schedule, slow));
  ASSERT_EQ(straggling.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(straggling[i].start, expected[i].start) << i;
    EXPECT_EQ(straggling[i].end, expected[i].end) << i;
  }
}

TEST(NoStragglers, LeaveThePlanAsItIs) {
  Scenario scenario = three_pipelines();
  scenario.run.stragglers.clear();
  scenario.run.noise = 0.1;
  const Plan plan = plan::lower(in_cells_of_three("1f1b", scenario), scenario);
  EXPECT_EQ(makespan(sim::simulate(plan::with_stragglers(plan, scenario.run))),
            makespan(sim::simulate(plan)));
}

INSTANTIATE_TEST_SUITE_P(Schedules, Stragglers, ::testing::Values("gpipe", "1f1b", "atlas"),
                         [](const auto& schedule) {
                           const std::string name = schedule.param;
                           return name == "1f1b" ? "one_f_one_b" : name;
                         });

}  // namespace
}  // namespace longhaul

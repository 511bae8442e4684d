#include "planner/bounds/split_tail.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "planner/bounds/bounds.hpp"
#include "planner/search/best.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

Scenario far_apart(int stages, int microbatches, Duration latency) {
  return spread(uniform_scenario(stages, microbatches), 2, latency, {});
}

Duration tail_bound(std::string_view name, const Scenario& scenario, DeviceId device) {
  const Relaxation relaxation = relax(schedule::generate(name, scenario), scenario);
  const RelaxedReplica& replica = relaxation.replicas.front();
  return split_tail_bound(relaxation, replica,
                          stage_times(relaxation, replica, MemoryLimit::ignored), device);
}

/// Every backward pass of device 1 in two, each W after the last D.
constexpr const char* kFilledTail = R"(# longhaul schedule 1
# name = "filled"
# devices = 2
# chunks = 2
# microbatches = 4
# replicas = 1
# device_of_chunk = 0,1
0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3
1F0,1I0,1F1,1I1,1F2,1I2,1F3,1I3,1W0,1W1,1W2,1W3
)";

// F = D = W = 100, B = 150, 250 between the devices. Device 1 starts at 350, has work of 4 x 250,
// and after its last gradient 250 and the last B of device 0 follow, 400 in all: four Ws, each of
// which costs 50 more than in a B.
TEST(SplitTail, FillsTheTailWithWsAtTheirPrice) {
  Scenario scenario = far_apart(2, 4, 250ns);
  scenario.costs.backward.assign(2, 150ns);
  scenario.memory.budget = 2;
  EXPECT_EQ(tail_bound("zb-h1", scenario, DeviceId{1}), 1550ns);
  // Device 0 has run its 4 Fs at 400 and waits for the first gradient until 800.
  EXPECT_EQ(tail_bound("zb-h1", scenario, DeviceId{0}), 1400ns);
  const Schedule schedule = schedule::read_csv(kFilledTail, "test", "filled");
  ASSERT_FALSE(schedule::first_violation(schedule, scenario));
  EXPECT_EQ(makespan_of(schedule, scenario), 1550ns);
  EXPECT_EQ(lower_bound(schedule, scenario).lower_bound, 1550ns);
}

// The same with a tail of 430: four Ws and 30 of waiting, not 4.3 Ws.
TEST(SplitTail, CountsWholeWs) {
  Scenario scenario = far_apart(2, 6, 280ns);
  scenario.costs.backward.assign(2, 150ns);
  scenario.memory.budget = 3;
  EXPECT_EQ(tail_bound("zb-h1", scenario, DeviceId{1}), 380ns + 6 * 250ns + 4 * 50ns + 30ns);
  // From 50 of waiting on a fifth W is as good.
  for (Link& link : scenario.links) link.latency = 305ns;
  EXPECT_EQ(tail_bound("zb-h1", scenario, DeviceId{1}), 405ns + 6 * 250ns + 5 * 50ns);
}

// Where two cost as much as one, splitting is free, and where one costs more than two, too: four Ws
// fill a tail of 400.
TEST(SplitTail, HasNoPriceWhereBIsNotCheaper) {
  Scenario scenario = far_apart(2, 4, 200ns);
  scenario.memory.budget = 2;
  for (const Duration backward : {200ns, 230ns}) {
    scenario.costs.backward.assign(2, backward);
    EXPECT_EQ(tail_bound("zb-h1", scenario, DeviceId{1}), 300ns + 1200ns);
  }
  // A tail of 1100 that four Ws cannot fill: 1050 to start with, 4 F, 4 D, then the tail.
  for (Link& link : scenario.links) link.latency = 900ns;
  EXPECT_EQ(tail_bound("zb-h1", scenario, DeviceId{1}), 1000ns + 4 * 200ns + 1100ns);
}

// A wave on 2 devices with chunks of half the size: F, D, W of 50. The memory holds the Fs of 4
// chunks, 200 of work. The first gradient of device 1 follows four Fs, a D and three ways of 100
// at 550, so it is as if the device had started at 350 and never waited; 4 x 300 follow.
TEST(SplitTail, HasNoMoreForwardsThanMemoryHoldsBeforeTheFirstGradient) {
  const Scenario scenario = far_apart(2, 4, 100ns);
  EXPECT_EQ(tail_bound("zbv", scenario, DeviceId{1}), 1550ns);
  Scenario roomy = scenario;
  roomy.memory.budget = 2;
  EXPECT_EQ(tail_bound("zbv", roomy, DeviceId{1}), 150ns + 1200ns);
  // With recomputation an R of 50 goes with each F, 400 in all, and the first gradient comes 50
  // later at 600: the device may as well start at 200; 4 x 400 follow.
  Scenario recomputed = scenario;
  recomputed.memory.recompute = true;
  recomputed.costs.recompute.assign(2, 100ns);
  recomputed.costs.message = recomputed.costs.activation;
  EXPECT_EQ(tail_bound("zbv", recomputed, DeviceId{1}), 200ns + 1600ns);
}

// The same without room for any activation: nothing before the first gradient's F at 550.
TEST(SplitTail, HasNoForwardsAheadWhereMemoryHoldsNone) {
  const Scenario scenario = far_apart(2, 4, 100ns);
  Relaxation relaxation = relax(schedule::generate("zbv", scenario), scenario);
  relaxation.limit = Bytes{};
  const RelaxedReplica& replica = relaxation.replicas.front();
  const auto times = stage_times(relaxation, replica, MemoryLimit::ignored);
  EXPECT_EQ(split_tail_bound(relaxation, replica, times, DeviceId{1}), 550ns + 1200ns);
}

// The search comes close to the optimum of small instances, closer than drawn orders do.
TEST(LowerBound, IsNeverAboveWhatTheSearchFinds) {
  int held = 0;
  int equal = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random{seed};
    Scenario scenario =
        far_apart(static_cast<int>(random.between(2, 4)), static_cast<int>(random.between(2, 6)),
                  Duration{random.between(0, 300)});
    scenario.memory.budget = 0.5 + 0.25 * static_cast<double>(random.between(1, 5));
    scenario.memory.recompute = random.between(0, 4) == 0;
    Costs& costs = scenario.costs;
    const Duration shared{random.between(40, 160)};
    for (std::size_t d = 0; d < costs.forward.size(); ++d) {
      for (auto* times : {&costs.forward, &costs.dgrad, &costs.wgrad, &costs.recompute})
        (*times)[d] = shared + Duration{random.between(0, 20)};
      costs.backward[d] = (costs.dgrad[d] + costs.wgrad[d]) * random.between(60, 102) / 100;
      costs.message[d] = Bytes{random.between(0, 4)};
    }
    for (const schedule::Placement placement :
         {schedule::Placement::unidirectional, schedule::Placement::loop,
          schedule::Placement::wave}) {
      SearchOptions options;
      options.moves = 6000;
      options.threads = 1;
      options.placements = {placement};
      const auto found = try_find_best(scenario, options);
      if (!found) continue;
      ASSERT_LE(found->bound.lower_bound, found->makespan)
          << "seed " << seed << ": " << found->bound.reason;
      ++held;
      equal += found->bound.lower_bound == found->makespan ? 1 : 0;
    }
  }
  RecordProperty("equal", equal);
  EXPECT_GT(held, 300);
  EXPECT_GT(equal, held / 10);
}

}  // namespace
}  // namespace longhaul::planner

#include "planner/bounds/stage_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/generators/generate.hpp"

namespace longhaul::planner {
namespace {

using ::testing::ElementsAre;

/// Blocks of 100 on two stages; a message there takes 100 and 500, back 40 and 300.
Scenario unequal_ways() {
  Scenario scenario = spread(uniform_scenario(2, 2), 2, {}, Duration{100});
  for (Link& link : scenario.links) {
    const bool there = link.from < link.to;
    link.latency = there ? 500ns : 300ns;
    if (!there) link.bandwidth = Bandwidth{link.bandwidth.bits_per_second() * 2.5};
  }
  return scenario;
}

Relaxation relaxation_of(const Scenario& scenario) {
  return relax(schedule::generate("zb-h1", scenario), scenario);
}

// Heads: F of stage 1 at 100 + 600, and the next 100 later. Its D at 800; the next one after two Fs
// and a D at 1000. Stage 0 has their gradients 100 + 340 later.
TEST(StageTimes, AddsUpBothWaysFromTheBegin) {
  const Relaxation relaxation = relaxation_of(unequal_ways());
  const auto times = stage_times(relaxation, relaxation.replicas.front(), MemoryLimit::ignored);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_THAT(times[0].forward_head, ElementsAre(0ns, 100ns));
  EXPECT_THAT(times[1].forward_head, ElementsAre(700ns, 800ns));
  EXPECT_THAT(times[1].gradient_head, ElementsAre(800ns, 1000ns));
  EXPECT_THAT(times[0].gradient_head, ElementsAre(1240ns, 1440ns));
}

// Tails, block included. Stage 0: D and W of one microbatch 200, of two 400. Stage 1 has D and a
// way of 340 before them, its F a D; stage 0's F has 600 and stage 1's F.
TEST(StageTimes, AddsUpBothWaysToTheEnd) {
  const Relaxation relaxation = relaxation_of(unequal_ways());
  const auto times = stage_times(relaxation, relaxation.replicas.front(), MemoryLimit::ignored);
  EXPECT_THAT(times[0].gradient_tail, ElementsAre(400ns, 200ns));
  EXPECT_THAT(times[1].gradient_tail, ElementsAre(840ns, 640ns));
  EXPECT_THAT(times[1].forward_tail, ElementsAre(940ns, 740ns));
  EXPECT_THAT(times[0].forward_tail, ElementsAre(1640ns, 1440ns));
}

// From the end of F of stage 0 to its D: 600, F, D, 340; of the last stage nothing.
TEST(StageTimes, ARoundTripHasBothWays) {
  const Relaxation relaxation = relaxation_of(unequal_ways());
  EXPECT_THAT(round_trips(relaxation, relaxation.replicas.front()), ElementsAre(1140ns, 0ns));
}

// D begins a recomputation after F, where no other stage lies between.
TEST(StageTimes, ARoundTripIsAtLeastTheRecomputation) {
  Scenario scenario = unequal_ways();
  scenario.memory.recompute = true;
  scenario.costs.recompute = {1500ns, 70ns};
  const Relaxation relaxation = relaxation_of(scenario);
  EXPECT_THAT(round_trips(relaxation, relaxation.replicas.front()), ElementsAre(1500ns, 70ns));
  scenario.costs.recompute[0] = 90ns;
  const Relaxation shorter = relaxation_of(scenario);
  EXPECT_THAT(round_trips(shorter, shorter.replicas.front()), ElementsAre(1210ns, 70ns));
}

}  // namespace
}  // namespace longhaul::planner

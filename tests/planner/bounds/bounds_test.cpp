#include "planner/bounds/bounds.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/random_schedules.hpp"
#include "planner/search/best.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

Scenario two_datacenters(int stages, int microbatches, Duration latency, Duration transfer = {}) {
  return spread(uniform_scenario(stages, microbatches), 2, latency, transfer);
}

Duration bound_of(std::string_view name, const Scenario& scenario) {
  return lower_bound(schedule::generate(name, scenario), scenario).lower_bound;
}

// Optima that a solver has proven: P=4, M=8, UD, memory P, F=D=W=100.
TEST(LowerBound, EqualsTheProvenOptima) {
  const std::pair<int, int> optima[] = {
      {0, 2700}, {50, 2900}, {100, 3100}, {200, 3500}, {400, 4300}};
  for (const auto& [latency, optimum] : optima) {
    const Scenario scenario = two_datacenters(4, 8, Duration{latency});
    EXPECT_EQ(bound_of("1f1b", scenario), Duration{optimum}) << latency;
  }
}

// Wave placement of the same: cross-wave-opt ends at these times.
TEST(LowerBound, EqualsTheOptimaOfWaves) {
  const std::pair<int, int> optima[] = {
      {0, 2550}, {50, 2700}, {100, 2950}, {200, 3550}, {400, 4750}};
  for (const auto& [latency, optimum] : optima) {
    const Scenario scenario = two_datacenters(4, 8, Duration{latency});
    EXPECT_EQ(bound_of("zbv", scenario), Duration{optimum}) << latency;
  }
}

// One device: its work alone. D and W of 100 each against one B of 150.
TEST(LowerBound, OfOneDeviceIsItsCheapestWork) {
  Scenario scenario = uniform_scenario(1, 5);
  EXPECT_EQ(bound_of("1f1b", scenario), 1500ns);
  scenario.costs.backward[0] = 150ns;
  EXPECT_EQ(bound_of("1f1b", scenario), 1250ns);
}

// 2 devices, M=3, 1000 on the wire each way, memory enough: F ends at 100, messages take 100-3100;
// device 1 ends its last D at 3300, which arrives at 4300; then D and W.
TEST(LowerBound, CountsALinkAsAMachine) {
  Scenario scenario = two_datacenters(2, 3, Duration{0}, Duration{1000});
  scenario.memory.budget = 2.0;
  EXPECT_EQ(bound_of("cross-ud", scenario), 4500ns);
  EXPECT_EQ(makespan_of(schedule::generate("cross-ud", scenario), scenario), 4500ns);
}

// 2 devices, budget of one activation: microbatch after microbatch. A round trip of device 0 is
// F 100, 500, F and D 200, 500, D 100 = 1400, and its W of 100 follows before the next F.
TEST(LowerBound, CountsRoundTripsUnderTheMemoryLimit) {
  Scenario scenario = two_datacenters(2, 4, Duration{500});
  scenario.memory.budget = 0.5;
  const Bound bound = lower_bound(schedule::generate("1f1b", scenario), scenario);
  EXPECT_EQ(bound.lower_bound, 4 * 1500ns);
  EXPECT_NE(bound.reason.find("memory"), std::string::npos) << bound.reason;
}

// The same over links that differ each way: F 100, 100 and 500 there, F and D 200, 40 and 300 back,
// D 100 and W 100: 1440. With recomputation before it, D begins no sooner; W then follows D.
TEST(LowerBound, CountsBothWaysOfARoundTrip) {
  Scenario scenario = two_datacenters(2, 4, {}, Duration{100});
  scenario.memory.budget = 0.5;
  for (Link& link : scenario.links) {
    const bool there = link.from < link.to;
    link.latency = there ? 500ns : 300ns;
    if (!there) link.bandwidth = Bandwidth{link.bandwidth.bits_per_second() * 2.5};
  }
  EXPECT_EQ(bound_of("1f1b", scenario), 4 * 1440ns);
}

// 2 replicas, ZeRO-1: gather, then F D W of 4 microbatches, then scatter; one device each.
TEST(LowerBound, HoldsDataParallelCommunication) {
  Scenario scenario = uniform_scenario(1, 4);
  scenario.parallel.replicas = 2;
  scenario = spread(scenario, 1, {}, {});
  scenario.datacenters = {{"a", {}}, {"b", {}}};
  scenario.placement = {DatacenterId{0}, DatacenterId{1}};
  scenario.links.clear();
  for (const int from : {0, 1}) {
    Link link;
    link.from = DatacenterId{from};
    link.to = DatacenterId{1 - from};
    link.latency = 700ns;
    scenario.links.push_back(link);
  }
  EXPECT_EQ(bound_of("1f1b", scenario), 700ns + 1200ns + 700ns);
}

// 4 replicas that hold 2000 bytes of weights in twos, a byte a ns between them: a gather of halves,
// F D W of 4 microbatches, a scatter of halves, and a sum of quarters there and back, of copies.
TEST(LowerBound, AddsTheSumOfCopiesToTheScatter) {
  Scenario scenario = uniform_scenario(1, 4);
  scenario.parallel.replicas = 4;
  scenario.parallel.shard = 2;
  scenario.parallel.gradient_sync = GradientSync::zero3;
  scenario.costs.weights = {Bytes{2000}};
  scenario.datacenters = {{"a", {}}, {"b", {}}, {"c", {}}, {"d", {}}};
  scenario.placement.clear();
  scenario.links.clear();
  for (int from = 0; from < 4; ++from) {
    scenario.placement.push_back(DatacenterId{from});
    for (int to = 0; to < 4; ++to) {
      Link link;
      link.from = DatacenterId{from};
      link.to = DatacenterId{to};
      link.bandwidth = 8_Gbps;
      if (from != to) scenario.links.push_back(link);
    }
  }
  EXPECT_EQ(bound_of("1f1b", scenario), 1000ns + 1200ns + 1000ns + 2 * 500ns);
  EXPECT_EQ(makespan_of(schedule::generate("1f1b", scenario), scenario), 4200ns);
}

// Replicas of F D W of 100 and of 200: the slower one decides, whichever it is.
TEST(LowerBound, OfReplicasThatDifferIsTheSlowest) {
  for (const int slow : {0, 1}) {
    Scenario scenario = uniform_scenario(1, 4);
    scenario.parallel.replicas = 2;
    scenario.parallel.gradient_sync = GradientSync::none;
    scenario.placement.assign(2, DatacenterId{0});
    const Costs fast = scenario.costs;
    for (auto* times : {&scenario.costs.forward, &scenario.costs.dgrad, &scenario.costs.wgrad})
      times->assign(1, 200ns);
    scenario.costs.backward.assign(1, 400ns);
    scenario.replica_costs = {scenario.costs, scenario.costs};
    scenario.replica_costs[to_size(1 - slow)] = fast;
    const Bound bound = lower_bound(schedule::generate("1f1b", scenario), scenario);
    EXPECT_EQ(bound.lower_bound, 4 * 600ns) << slow;
    EXPECT_THAT(bound.reason, ::testing::StartsWith(fmt::format("replica {}:", slow)));
  }
}

TEST(LowerBound, SaysWhatItHoldsForAndWhy) {
  const Scenario scenario = two_datacenters(4, 8, Duration{400});
  const Bound bound = lower_bound(schedule::generate("zbv", scenario), scenario);
  EXPECT_NE(bound.holds_for.find("budget 1"), std::string::npos) << bound.holds_for;
  EXPECT_FALSE(bound.reason.empty());
  EXPECT_DOUBLE_EQ(gap(150ns, {100ns, "", ""}), 0.5);
  EXPECT_DOUBLE_EQ(gap(110ns, {}), 0.0);
}

TEST(LowerBound, IsNeverAboveAnyGeneratedSchedule) {
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random{seed};
    const Scenario scenario = test::random_scenario(random);
    for (const Candidate& candidate : find_candidates(scenario, Arrangement::decoupled).fitting) {
      const Bound bound = lower_bound(candidate.schedule, scenario);
      ASSERT_LE(bound.lower_bound, candidate.makespan)
          << "seed " << seed << " " << candidate.schedule.name << ": " << bound.reason;
      ++held;
    }
  }
  EXPECT_GT(held, 1000);
}

// In cells the drawn rows get turns of their own.
TEST(LowerBound, IsNeverAboveRandomOrders) {
  int held = 0;
  int held_in_cells = 0;
  for (std::uint64_t seed = 1000; seed < 1300; ++seed) {
    Random random{seed};
    const Scenario scenario = test::random_scenario(random);
    for (const schedule::Generator& generator : schedule::generators()) {
      Schedule like;
      try {
        like = schedule::generate(generator.name, scenario);
      } catch (const Error&) {
        continue;  // not defined on this scenario
      }
      const Bound bound = lower_bound(like, scenario);
      const auto drawn = test::RandomOrder{like, scenario, random}.draw();
      if (!drawn) continue;
      const auto violation = schedule::first_violation(*drawn);
      ASSERT_FALSE(violation.has_value()) << violation->text;
      const bool shares = like.cell > 1;
      const Schedule order = shares ? share_wan(*drawn, scenario) : *drawn;
      ASSERT_LE(bound.lower_bound, makespan_of(order, scenario))
          << "seed " << seed << " " << generator.name << ": " << bound.reason;
      ++held;
      held_in_cells += shares;
    }
  }
  EXPECT_GT(held, 1000);
  EXPECT_GT(held_in_cells, 20);
}

// The rows say which blocks a schedule recomputes, whatever the scenario says.
TEST(LowerBound, CountsTheRecomputationOfTheSchedule) {
  Scenario without = two_datacenters(2, 6, Duration{1000});
  without.costs.recompute.assign(2, 300ns);
  without.costs.message.assign(2, Bytes{10});
  Scenario with = without;
  with.memory.recompute = true;
  const Schedule plain = schedule::generate("1f1b", without);
  const Schedule recomputed = schedule::generate("1f1b", with);
  Schedule mixed = plain;
  mixed.rows[1] = recomputed.rows[1];
  for (const Schedule& schedule : {plain, recomputed, mixed}) {
    const Bound bound = lower_bound(schedule, without);
    EXPECT_EQ(bound.lower_bound, lower_bound(schedule, with).lower_bound);
    EXPECT_EQ(bound.holds_for, lower_bound(schedule, with).holds_for);
    EXPECT_LE(bound.lower_bound, makespan_of(schedule, with));
  }
  EXPECT_THAT(lower_bound(plain, with).holds_for, ::testing::EndsWith(", not recomputed"));
  EXPECT_THAT(lower_bound(recomputed, without).holds_for,
              ::testing::EndsWith(", every block recomputed"));
  EXPECT_THAT(lower_bound(mixed, with).holds_for, ::testing::EndsWith(", chunk 1 recomputed"));
  Schedule layout = plain;
  for (auto& row : layout.rows) row.clear();
  EXPECT_EQ(lower_bound(layout, with).lower_bound, lower_bound(recomputed, with).lower_bound);
  EXPECT_EQ(lower_bound(layout, without).lower_bound, lower_bound(plain, with).lower_bound);
}

TEST(LowerBound, OfSeveralLayoutsIsTheSmallestAndNamesAll) {
  const Scenario scenario = two_datacenters(4, 8, Duration{100});
  const std::vector<Schedule> layouts{schedule::generate("zbv", scenario),
                                      schedule::generate("1f1b", scenario),
                                      schedule::generate("zb-h1", scenario)};
  const Bound bound = lower_bound_of_any(layouts, scenario);
  EXPECT_EQ(bound.lower_bound, 2950ns) << "the wave's; ud has 3100";
  EXPECT_EQ(bound.holds_for,
            "any of ud, wave placement, whole blocks or parts, budget 1, not recomputed");
  EXPECT_EQ(lower_bound_of_any({}, scenario).lower_bound, 0ns);
}

TEST(LowerBound, GrowsWithLatencyAndWork) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random{seed};
    Scenario scenario = test::random_scenario(random);
    for (const char* name : {"1f1b", "zbv"}) {
      const Duration before = bound_of(name, scenario);
      Scenario slower = scenario;
      for (Link& link : slower.links) link.latency += 100ns;
      EXPECT_GE(bound_of(name, slower), before) << seed;
      slower = scenario;
      for (auto* times : {&slower.costs.forward, &slower.costs.dgrad, &slower.costs.wgrad,
                          &slower.costs.backward}) {
        for (Duration& time : *times) time += 30ns;
      }
      EXPECT_GE(bound_of(name, slower), before) << seed;
    }
  }
}

}  // namespace
}  // namespace longhaul::planner

// The bounds against every order of small instances.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "planner/all_orders.hpp"
#include "planner/bounds/bounds.hpp"

namespace longhaul {
namespace {

Scenario far_apart(int stages, int microbatches, Duration latency, Duration transfer = {}) {
  return spread(uniform_scenario(stages, microbatches), stages > 1 ? 2 : 1, latency, transfer);
}

TEST(LowerBound, IsNeverAboveTheOptimumOfAllOrders) {
  struct Size {
    int stages, microbatches;
    bool any_order;
    int instances;
  };
  int equal = 0;
  int all = 0;
  for (const Size& size :
       {Size{2, 2, true, 6}, Size{2, 3, false, 12}, Size{3, 2, false, 12}, Size{3, 3, false, 1}}) {
    for (int instance = 0; instance < size.instances; ++instance) {
      Random random{
          static_cast<std::uint64_t>(100 * size.stages + 10 * size.microbatches + instance)};
      Scenario scenario =
          far_apart(size.stages, size.microbatches, Duration{random.between(0, 300)},
                    Duration{random.between(0, 200)});
      scenario.memory.budget = random.between(0, 1) == 0 ? 1.0 : 0.75;
      for (auto* times : {&scenario.costs.forward, &scenario.costs.dgrad, &scenario.costs.wgrad}) {
        for (Duration& time : *times) time = Duration{random.between(20, 200)};
      }
      for (std::size_t d = 0; d < scenario.costs.backward.size(); ++d)
        scenario.costs.backward[d] = scenario.costs.dgrad[d] + scenario.costs.wgrad[d];
      const Duration optimum =
          test::exhaustive_optimum(scenario, {.any_order = size.any_order, .fused = false});
      const Duration bound =
          planner::lower_bound(schedule::generate("zb-h1", scenario), scenario).lower_bound;
      EXPECT_LE(bound, optimum) << size.stages << " " << size.microbatches << " " << instance;
      EXPECT_GT(bound, optimum * 3 / 4);
      ++all;
      equal += bound == optimum ? 1 : 0;
    }
  }
  RecordProperty("equal", fmt::format("{} of {}", equal, all));
  EXPECT_GT(equal, all / 3);
}

/// Times and sizes of any kind: W much longer than D, B cheaper than both or dearer, recomputed or
/// not, activations of a few bytes, most of them odd ones.
Scenario odd_scenario(int stages, int microbatches, Random& random) {
  Scenario scenario = far_apart(stages, microbatches, Duration{random.between(0, 600)},
                                Duration{random.between(0, 100)});
  for (Link& link : scenario.links) {  // no way is like the other
    link.latency = Duration{random.between(0, 600)};
    link.bandwidth =
        Bandwidth{link.bandwidth.bits_per_second() * static_cast<double>(random.between(1, 4))};
  }
  scenario.memory.budget = 0.25 * static_cast<double>(random.between(2, 6));
  const std::int64_t longer = random.between(0, 1) == 0 ? 1 : 20;
  for (std::size_t d = 0; d < scenario.costs.forward.size(); ++d) {
    Costs& costs = scenario.costs;
    costs.forward[d] = Duration{random.between(0, 100)};
    costs.dgrad[d] = Duration{random.between(0, 100)};
    costs.wgrad[d] = Duration{random.between(0, 100) * longer};
    costs.recompute[d] = Duration{random.between(0, 100)};
    costs.backward[d] = (costs.dgrad[d] + costs.wgrad[d]) * random.between(20, 110) / 100;
    costs.activation[d] = Bytes{2 * random.between(0, 5) + 1};
    costs.message[d] = Bytes{random.between(1, 4)};
  }
  return scenario;
}

TEST(LowerBound, IsNeverAboveTheOptimumOfOddSizesAndTimes) {
  struct Size {
    int stages, microbatches;
    bool any_order, recompute;
  };
  int held = 0;
  for (const Size& size :
       {Size{2, 2, true, false}, Size{2, 2, false, true}, Size{2, 3, false, false},
        Size{3, 2, false, false}, Size{1, 5, false, false}}) {
    for (int instance = 0; instance < 20; ++instance) {
      Random random{static_cast<std::uint64_t>(1000 * size.stages + 100 * size.microbatches +
                                               (size.recompute ? 50 : 0) + instance)};
      Scenario scenario = odd_scenario(size.stages, size.microbatches, random);
      scenario.memory.recompute = size.recompute;
      const Duration optimum =
          test::exhaustive_optimum(scenario, {.any_order = size.any_order, .fused = true});
      if (optimum == Duration::max()) continue;
      const planner::Bound bound =
          planner::lower_bound(schedule::generate("zb-h1", scenario), scenario);
      EXPECT_LE(bound.lower_bound, optimum)
          << size.stages << " " << size.microbatches << " " << instance << ": " << bound.reason;
      ++held;
    }
  }
  EXPECT_GT(held, 50);
}

/// Every row of the first device, ahead of a last one that takes next to no time: long enough for
/// one F to be paid for by many gradients.
TEST(LowerBound, IsNeverAboveTheOptimumOfTheFirstDevice) {
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random{seed};
    Scenario scenario = far_apart(2, 6, Duration{random.between(50, 400)});
    Costs& costs = scenario.costs;
    costs.forward = {Duration{random.between(1, 20)}, 1ns};
    costs.dgrad = {Duration{random.between(1, 20)}, 1ns};
    costs.wgrad = {Duration{random.between(40, 400)}, 0ns};
    costs.backward = {costs.dgrad[0] + costs.wgrad[0], 1ns};
    costs.activation.assign(2, Bytes{2 * random.between(0, 3) + 1});
    costs.message.assign(2, Bytes{1});
    scenario.memory.budget = 0.5 * static_cast<double>(random.between(1, 4));
    Schedule schedule = schedule::generate("zb-h1", scenario);
    const planner::Bound bound = planner::lower_bound(schedule, scenario);
    schedule.rows[1].clear();
    for (int m = 0; m < 6; ++m) {
      for (const BlockKind kind : {BlockKind::F, BlockKind::B})
        schedule.rows[1].push_back({kind, 0, 1, ChunkId{1}, MicrobatchId{m}});
    }
    for (auto& row : test::AllRows{schedule, scenario, {}}.of(0)) {
      schedule.rows[0] = std::move(row);
      ASSERT_LE(bound.lower_bound, planner::makespan_of(schedule, scenario))
          << seed << bound.reason;
      ++held;
    }
  }
  EXPECT_GT(held, 10'000);
}

}  // namespace
}  // namespace longhaul

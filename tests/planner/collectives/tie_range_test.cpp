#include "planner/collectives/tie_range.hpp"

#include <gtest/gtest.h>

#include "planner/collectives/collective_times.hpp"
#include "scenario/reader/load.hpp"
#include "support/collectives.hpp"
#include "support/shipped.hpp"

namespace longhaul::planner {
namespace {

using testing::flat;
using testing::scenario_of;
using Algorithm = plan::CollectiveAlgorithm;

TieRange range_of(const plan::Collective& collective, const Scenario& scenario,
                  const TieDraws& how = {}) {
  return range_over_ties(collective, scenario, how).or_throw();
}

// A ring's messages never ask for one port at once: all draws are the exact time, later by at most
// a draw a step and one at its begin.
TEST(TieRange, OfARingIsItsTime) {
  const Scenario scenario =
      scenario_of({.gpus = 4, .interfaces = "device = \"1GB/s\"\ndevice_latency = \"1ms\""});
  const auto ring = flat(CollectiveKind::all_gather, 4, Bytes{4'000'000}, Algorithm::ring);
  const TieRange range = range_of(ring, scenario);
  EXPECT_GE(range.low, 6ms);
  EXPECT_LE(range.low, range.median);
  EXPECT_LE(range.median, range.high);
  EXPECT_LE(range.high, 6ms + 4us);
  EXPECT_EQ(range_of(ring, scenario, {.draws = 3, .lateness = {}}), (TieRange{6ms, 6ms, 6ms, 3}));
}

// 2 nodes of 2, a vector of 2 MB swapped whole: inside the nodes in 1 ms (2 GB/s), then both ranks
// of a node ask for its interface (1 GB/s) at once: 2 ms each, one after the other, 5 ms,
// whichever is first.
TEST(TieRange, EveryOrderOfOneTieTakesEquallyLong) {
  const Scenario scenario = scenario_of(
      {.nodes = 2, .gpus = 2, .interfaces = "device = \"2GB/s\"\ninternal = \"1GB/s\""});
  const auto swapped = flat(CollectiveKind::all_reduce, 4, Bytes{2'000'000}, Algorithm::exchange);
  const TieRange range = range_of(swapped, scenario, {.draws = 40});
  EXPECT_GE(range.low, 5ms);
  EXPECT_LE(range.high, 5ms + 3us);
}

// Ties at three levels follow each other, and what was served first in one is late in another.
TEST(TieRange, SomeOrdersOfTiesTakeLonger) {
  const Scenario scenario =
      scenario_of({.datacenters = 2,
                   .nodes = 2,
                   .gpus = 2,
                   .interfaces = "device = \"8GB/s\"\ninternal = \"1GB/s\"\negress = \"0.5GB/s\"\n"
                                 "ingress = \"0.5GB/s\"",
                   .link = "latency = \"1ms\""});
  const auto swapped = flat(CollectiveKind::all_reduce, 8, Bytes{8'000'000}, Algorithm::halving);
  const Duration exact = play_collective(swapped, scenario).or_throw().duration;
  const TieRange range = range_of(swapped, scenario);
  EXPECT_LT(range.low, range.high);
  EXPECT_EQ(range_of(swapped, scenario), range) << "the same seed, the same draws";
  EXPECT_GE(range.high, exact);
}

// A ring that leaves each site four times, two of a node's messages in each step: which asks
// first at the very begin decides for good. Either pairs that share no interface cross together, 30
// steps of two transfers of 5 ms after one latency, or all four wait for each other, 30 steps of
// four.
TEST(TieRange, TheFirstMessagesOfAllMayComeInAnyOrder) {
  const std::vector<std::string> order{R"(parallel.order="tensor,stage,replica")"};
  const Scenario scenario = scenario::load_scenario(
      testing::in_checkout("benchmarks/scenarios/collectives-2x8.toml"), order);
  const auto ring = flat(CollectiveKind::all_reduce, 16, Bytes{16'000'000}, Algorithm::ring);
  EXPECT_EQ(play_collective(ring, scenario).or_throw().duration, 610ms);
  const TieRange range = range_of(ring, scenario);
  EXPECT_GE(range.low, 310ms);
  EXPECT_LE(range.low, 311ms);
  EXPECT_GE(range.high, 610ms);
  EXPECT_LE(range.high, 611ms);
}

}  // namespace
}  // namespace longhaul::planner

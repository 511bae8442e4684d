#include "planner/sites/placement_bounds.hpp"

#include <gtest/gtest.h>

#include "planner/site_scenarios.hpp"
#include "planner/sites/branch_and_bound.hpp"
#include "planner/sites/cell_times.hpp"

namespace longhaul::planner {
namespace {

using test::random_sites;
using test::sites_scenario;

const std::vector<std::string> kCellSchedules{"atlas", "atlas-timed", "atlas-even", "varuna",
                                              "varuna-fill"};

Duration least_time(const GpuInventory& inventory, const CellTimes& cells, const CellQuery& query,
                    Duration enough) {
  const PlacementBounds bounds{inventory, query.schedule, query.layout.pipelines,
                               query.layout.cells};
  return cells.least_time(query, bounds.hops(query.layout.placement), enough);
}

/// Nodes of several GPUs and links that all cells share, too.
Scenario contended_sites(std::uint64_t seed) {
  Scenario scenario = test::random_sites(seed, 3);
  for (Link& link : scenario.links) {
    if (seed % 3 == 1) link.sharing = Sharing::datacenter;
  }
  for (NodeInterfaces& nodes : scenario.nodes) nodes.gpus = seed % 4 == 2 ? 2 : 1;
  return scenario;
}

TEST(OrderBound, LiesBelowEveryCell) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Scenario scenario = contended_sites(seed);
    const GpuInventory inventory{scenario};
    const int pipelines = *scenario.parallel.cell;
    const auto order = ordered_datacenters(inventory, SiteOrder::distance);
    for (const CellModel model : {CellModel::pooled, CellModel::relays}) {
      CellTimes cells{inventory, model, 1};
      for (const std::string& schedule : kCellSchedules) {
        for (int count = 1; count <= inventory.most_cells(pipelines); ++count) {
          const auto placement = greedy_placement(inventory, order, count * pipelines);
          if (!placement) continue;
          const CellQuery query{parse_schedule(schedule), {*placement, count, pipelines}};
          const CellTime time = cells.times({{query}}).front();
          if (!time.failure.empty()) continue;
          const Duration least = least_time(inventory, cells, query, Duration::max());
          EXPECT_GT(least, Duration::zero());
          EXPECT_LE(least, time.time)
              << schedule << " on " << to_text(inventory, *placement) << ", seed " << seed;
          const Duration half = least_time(inventory, cells, query, least / 2);
          EXPECT_GE(half, least / 2);
          EXPECT_LE(half, least);
        }
      }
    }
  }
}

TEST(OrderBound, IsTheTimeWhereNothingIsContended) {
  const Scenario scenario = test::sites_scenario(2, 1, {1, 1}, 7ms, Bandwidth{8388608e3}, 1);
  const GpuInventory inventory{scenario};
  const CellTimes cells{inventory};
  const CellQuery query{parse_schedule("atlas"),
                        {{{DatacenterId{0}, 1}, {DatacenterId{1}, 1}}, 1, 1}};
  // F, message, F, B, message, B; a ns less for each rounding.
  EXPECT_EQ(least_time(inventory, cells, query, Duration::max()), 22ms - 2ns);
}

// Two pipelines take turns: two messages of 1 ms one after the other, at the rate of both nodes.
TEST(OrderBound, CountsTheTurns) {
  const Scenario scenario = test::sites_scenario(2, 1, {2, 2}, 7ms, Bandwidth{8388608e3}, 2);
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory, CellModel::pooled, 1};
  const CellQuery query{parse_schedule("atlas"),
                        {{{DatacenterId{0}, 1}, {DatacenterId{1}, 1}}, 1, 2}};
  const Duration time = cells.times({{query}}).front().time;
  const Duration least = least_time(inventory, cells, query, Duration::max());
  EXPECT_LE(least, time);
  EXPECT_GE(least, 21ms + 500us - 10ns);  // half a ms a message, the second waits for the first
}

TEST(OrderBound, LeavesTheBestOfAll) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Scenario scenario = test::random_sites(seed, 4);
    const GpuInventory inventory{scenario};
    for (const SiteObjective objective :
         {SiteObjective::throughput, SiteObjective::cost, SiteObjective::time}) {
      SiteSearchOptions options{
          parse_schedules("atlas,varuna"), {1, 2}, std::nullopt, objective, true, std::nullopt};
      CellTimes some{inventory, CellModel::pooled, 1};
      const SiteSearch found = search_sites(inventory, options, some);
      options.prune = false;
      CellTimes all{inventory, CellModel::pooled, 1};
      const SiteSearch exhaustive = search_sites(inventory, options, all);
      ASSERT_TRUE(found.best && exhaustive.best);
      EXPECT_EQ(score(*found.best, objective), score(*exhaustive.best, objective))
          << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace longhaul::planner

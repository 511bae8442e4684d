#include "planner/sites/branch_and_bound.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/site_scenarios.hpp"
#include "planner/sites/break_even.hpp"
#include "planner/sites/cell_times.hpp"
#include "planner/sites/placement_bounds.hpp"

namespace longhaul::planner {
namespace {

using test::random_sites;
using test::sites_scenario;

const std::vector<std::string> kSchedules{"1f1b",  "gpipe",  "zb-h1", "cross-ud",
                                          "atlas", "varuna", "zbv"};

CellBound bound_of(const GpuInventory& inventory, const CellQuery& query) {
  const PlacementBounds bounds{inventory, query.schedule, query.layout.pipelines,
                               query.layout.cells};
  PlacementBounds::State state;
  std::int64_t before = 0;
  for (const DatacenterStages& share : query.layout.placement) {
    state = bounds.extended(state, share);
    const std::int64_t now = bounds.bound(state).largest();
    EXPECT_LE(before, now) << "a longer way has a lower bound";
    before = now;
  }
  return bounds.bound(state);
}

TEST(WayBounds, LieBelowEveryCell) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Scenario scenario = test::random_sites(seed, 3);
    const GpuInventory inventory{scenario};
    CellTimes cells{inventory, CellModel::pooled, 1};
    for (const std::string& schedule : kSchedules) {
      const int pipelines = *scenario.parallel.cell;
      for (int count = 1; count <= inventory.most_cells(pipelines); ++count) {
        const auto order = ordered_datacenters(inventory, SiteOrder::distance);
        const auto placement = greedy_placement(inventory, order, count * pipelines);
        if (!placement) continue;
        const CellQuery query{parse_schedule(schedule), {*placement, count, pipelines}};
        const CellTime time = cells.times({{query}}).front();
        if (!time.failure.empty()) continue;
        EXPECT_LE(bound_of(inventory, query).largest(), time.time.count())
            << schedule << " on " << to_text(inventory, *placement) << ", seed " << seed;
      }
    }
  }
}

// One stage, one microbatch: every bound is the time itself.
TEST(WayBounds, AreTightWhereNothingOverlaps) {
  const Scenario scenario = test::sites_scenario(2, 1, {1, 1}, 7ms, Bandwidth{8388608e3}, 1);
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory};
  const CellQuery query{parse_schedule("1f1b"),
                        {{{DatacenterId{0}, 1}, {DatacenterId{1}, 1}}, 1, 1}};
  // F, message, F, B, message, B.
  EXPECT_EQ(cells.times({{query}}).front().time, 1ms + 8ms + 1ms + 2ms + 8ms + 2ms);
  EXPECT_EQ(bound_of(inventory, query).largest(), (22ms - 2ns) / 1ns);  // a ns for each rounding
}

// Of four messages each way one is of the round trip; the others follow it over the link.
TEST(WayBounds, CountAllMessagesOfALink) {
  const Scenario scenario = test::sites_scenario(2, 4, {1, 1}, 7ms, Bandwidth{8388608e3}, 1);
  const GpuInventory inventory{scenario};
  const CellBound bound = bound_of(
      inventory, {parse_schedule("1f1b"), {{{DatacenterId{0}, 1}, {DatacenterId{1}, 1}}, 1, 1}});
  EXPECT_EQ(bound.path, (22ms - 2ns) / 1ns);
  EXPECT_EQ(bound.wan, (25ms - 5ns) / 1ns);
}

SiteSearch search(const GpuInventory& inventory, const SiteSearchOptions& options) {
  CellTimes cells{inventory, CellModel::pooled, 1};
  return search_sites(inventory, options, cells);
}

TEST(SiteSearch, EqualsExhaustiveSearchAtFourDatacenters) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Scenario scenario = test::random_sites(seed, 4);
    const GpuInventory inventory{scenario};
    for (const SiteObjective objective :
         {SiteObjective::throughput, SiteObjective::cost, SiteObjective::time}) {
      SiteSearchOptions options{
          parse_schedules("1f1b,zb-h1"), {1, 2}, std::nullopt, objective, true, std::nullopt};
      const SiteSearch found = search(inventory, options);
      options.prune = false;
      const SiteSearch all = search(inventory, options);
      ASSERT_TRUE(found.best && all.best);
      EXPECT_EQ(score(*found.best, objective), score(*all.best, objective)) << "seed " << seed;
      EXPECT_EQ(found.candidates, all.candidates);
      EXPECT_EQ(found.evaluated + found.pruned_in_all(), found.candidates);
      EXPECT_EQ(all.evaluated, all.candidates);
      EXPECT_LE(found.simulated, all.simulated);
    }
  }
}

TEST(SiteSearch, EqualsExhaustiveSearchWithCellsThatShareTheWan) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Scenario scenario = test::random_sites(seed, 4);
    const GpuInventory inventory{scenario};
    SiteSearchOptions options{parse_schedules("atlas"),  {2},  std::nullopt,
                              SiteObjective::throughput, true, std::nullopt};
    const SiteSearch found = search(inventory, options);
    options.prune = false;
    const SiteSearch all = search(inventory, options);
    ASSERT_TRUE(found.best && all.best);
    EXPECT_EQ(score(*found.best, options.objective), score(*all.best, options.objective));
  }
}

TEST(SiteSearch, IsNeverWorseThanAlgorithm1) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Scenario scenario = test::random_sites(seed, 5);
    const GpuInventory inventory{scenario};
    CellTimes cells{inventory, CellModel::pooled, 1};
    for (const SiteOrder order : {SiteOrder::availability, SiteOrder::price, SiteOrder::distance}) {
      const int pipelines = *scenario.parallel.cell;
      const SitePlans plans =
          algorithm1(inventory, {order, parse_schedule("1f1b"), pipelines, std::nullopt}, cells);
      SiteSearchOptions options;
      options.schedules = parse_schedules("1f1b");
      options.pipelines = {pipelines};
      for (const SiteObjective objective : {SiteObjective::throughput, SiteObjective::cost}) {
        options.objective = objective;
        const SiteSearch found = search_sites(inventory, options, cells);
        ASSERT_TRUE(found.best);
        EXPECT_LE(score(*found.best, objective),
                  score(*best_plan(plans.plans, objective), objective))
            << "seed " << seed;
      }
    }
  }
}

TEST(SiteSearch, SaysHowFarALimitMayBeOff) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Scenario scenario = test::random_sites(seed, 4);
    const GpuInventory inventory{scenario};
    SiteSearchOptions options{parse_schedules("1f1b"),   {1},  std::nullopt,
                              SiteObjective::throughput, true, 1};
    const SiteSearch some = search(inventory, options);
    options.limit.reset();
    const SiteSearch all = search(inventory, options);
    EXPECT_EQ(some.evaluated + some.pruned_in_all() + some.unexplored, some.candidates);
    EXPECT_GE(score(*all.best, options.objective),
              score(*some.best, options.objective) * (1 - some.gap) * (1 - 1e-12));
    EXPECT_EQ(all.gap, 0);
  }
}

TEST(SiteSearch, SkipsOrdersOfAlikeDatacenters) {
  const Scenario scenario = test::sites_scenario(8, 4, {8, 8, 8, 8}, 1ms, Bandwidth{5e9}, 1);
  const GpuInventory inventory{scenario};
  SiteSearchOptions options;
  options.schedules = parse_schedules("1f1b");
  const SiteSearch found = search(inventory, options);
  // 4! / (4 - k)! sequences of k datacenters, times the ways to divide 8 stages into k shares of at
  // most 8, 4 and 2 stages: D = 1, 2, and 3 and 4 (8/3 = 2 stages each).
  EXPECT_EQ(found.candidates,
            (4 * 1 + 12 * 7 + 24 * 21 + 24 * 35) + (12 * 1 + 24 * 12 + 24 * 31) + 24 + 24);
  EXPECT_LE(found.evaluated, found.candidates / 24) << "all orders of four are one";
  EXPECT_EQ(found.evaluated + found.pruned_in_all(), found.candidates);
}

// Two sites together cost less an hour than the first alone, but for what leaves them.
TEST(SiteSearch, SaysWhereEgressRulesPlacementsOut) {
  Scenario scenario = test::sites_scenario(4, 4, {4, 3}, 0ms, Bandwidth{1e12}, 1);
  scenario.datacenters[0].price = 2;
  scenario.datacenters[1].price = 1;
  for (Datacenter& datacenter : scenario.datacenters) datacenter.egress_price = 1e6;
  const GpuInventory inventory{scenario};
  SiteSearchOptions options;
  options.schedules = parse_schedules("1f1b");
  options.pipelines = {1};
  options.objective = SiteObjective::cost;
  const SiteSearch found = search(inventory, options);
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->layout.placement.size(), 1U);
  EXPECT_EQ(found.candidates, 1 + 2 * 3) << "the first, or both in either order";
  EXPECT_EQ(found.pruned[static_cast<int>(SitePrune::all_reduce)], 2 * 3);
}

/// Up to 12 GPUs each, C by the links, of which some are missing.
Scenario random_inventory(std::uint64_t seed) {
  Random random{seed + 1000};
  Scenario scenario = test::random_sites(seed, 3);
  scenario.parallel.cell.reset();
  for (Datacenter& datacenter : scenario.datacenters)
    datacenter.gpus = static_cast<int>(random.between(0, 12));
  const DatacenterId lonely{static_cast<int>(random.between(0, 5))};  // 3 to 5: none is
  std::erase_if(scenario.links, [&](const Link& link) {
    return (link.from == lonely || link.to == lonely) && random.between(0, 1) == 0;
  });
  return scenario;
}

TEST(SiteSearch, MoreGpusTakeNoPlanAwayAndMakeNoneWorse) {
  int planned = 0;
  int better = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scenario less = random_inventory(seed);
    Scenario more = less;
    Random random{seed};
    for (Datacenter& datacenter : more.datacenters)
      *datacenter.gpus += static_cast<int>(random.between(0, 1) * random.between(0, 9));
    const GpuInventory few{less}, many{more};
    ASSERT_EQ(filling_of(few.datacenters(), few.stages()), Filling::any);
    CellTimes cells_of_few{few, CellModel::pooled, 1}, cells_of_many{many, CellModel::pooled, 1};
    for (const SiteObjective objective :
         {SiteObjective::throughput, SiteObjective::cost, SiteObjective::time}) {
      SiteSearchOptions options{
          parse_schedules("1f1b,atlas"), {}, std::nullopt, objective, true, std::nullopt};
      const SiteSearch before = search_sites(few, options, cells_of_few);
      const SiteSearch after = search_sites(many, options, cells_of_many);
      EXPECT_EQ(before.why_none.empty(), before.best.has_value()) << seed;
      if (!before.best) continue;
      ++planned;
      ASSERT_TRUE(after.best) << "seed " << seed << ": " << after.why_none;
      EXPECT_LE(score(*after.best, objective), score(*before.best, objective) * (1 + 1e-12))
          << "seed " << seed << ", " << to_string(objective);
      better += score(*after.best, objective) < score(*before.best, objective);
      const Algorithm1Options plan{SiteOrder::availability, parse_schedule("1f1b"), std::nullopt,
                                   std::nullopt, parse_schedules("atlas")};
      for (const SitePlans& plans :
           {plan_sites(few, plan, cells_of_few), plan_sites(many, plan, cells_of_many)})
        EXPECT_NE(best_plan(plans.plans, objective), nullptr) << seed;
    }
  }
  EXPECT_GT(planned, 60);
  EXPECT_GT(better, 10);
}

TEST(SiteSearch, TakesAnyNumberOfStagesWhereThereAreFewPlacements) {
  // Sequences of 1, 2, 3 datacenters times ways to divide the stages: 3 + 6 (P - 1) + 6 (P - 1)
  // (P - 2) / 2.
  EXPECT_EQ(filling_of(3, 26), Filling::any);   // 1,953
  EXPECT_EQ(filling_of(3, 27), Filling::full);  // 2,109
  EXPECT_EQ(filling_of(2, 999), Filling::any);
  EXPECT_EQ(filling_of(8, 60), Filling::full);
}

TEST(SiteSearch, DoesWithoutLinksThatAreNotThere) {
  Scenario scenario = test::sites_scenario(8, 4, {6, 4, 6}, 1ms, Bandwidth{5e9}, 1);
  std::erase_if(scenario.links, [](const Link& link) {
    return link.from != DatacenterId{1} && link.to != DatacenterId{1};
  });
  const GpuInventory inventory{scenario};
  SiteSearchOptions options;
  options.schedules = parse_schedules("1f1b");
  const SiteSearch found = search(inventory, options);
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.evaluated + found.pruned_in_all(), found.candidates);
  for (std::size_t i = 0; i + 1 < found.best->layout.placement.size(); ++i)
    EXPECT_NE(scenario.link(found.best->layout.placement[i].datacenter,
                            found.best->layout.placement[i + 1].datacenter),
              nullptr);
}

// A query without a link among the queries keeps no other cell from being simulated.
TEST(CellTimes, KnowTheOthersWhereALinkIsMissing) {
  Scenario scenario = test::sites_scenario(2, 1, {4, 1}, 7ms, Bandwidth{1e9}, 1);
  std::erase_if(scenario.links, [](const Link& link) { return link.from != link.to; });
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory, CellModel::relays, 1};
  const CellQuery unlinked{parse_schedule("1f1b"),
                           {{{DatacenterId{0}, 1}, {DatacenterId{1}, 1}}, 1, 1}};
  const CellQuery inside{parse_schedule("1f1b"), {{{DatacenterId{0}, 2}}, 1, 1}};
  const auto refused = cells.try_times({{unlinked, inside}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.refusal().reason, ::testing::HasSubstr("no link from dca to dcb"));
  EXPECT_GT(cells.times({{inside}}).front().time, Duration::zero());
}

// Two pipelines in one datacenter whose devices have one network together.
TEST(CellTimes, WaitForEachOtherOnALinkInsideADatacenter) {
  Scenario scenario = test::sites_scenario(2, 1, {4}, 7ms, Bandwidth{1e9}, 2);
  Link inside;
  inside.bandwidth = Bandwidth{8388608e3};
  inside.sharing = Sharing::datacenter;
  scenario.links.push_back(inside);
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory};
  const auto time = [&](int count, int pipelines) {
    return cells
        .times({{CellQuery{parse_schedule("1f1b"), {{{DatacenterId{0}, 2}}, count, pipelines}}}})
        .front()
        .time;
  };
  // F, message of 1 ms, F, B, message, B; the second pipeline's messages come after the first's.
  EXPECT_EQ(time(1, 1), 1ms + 1ms + 1ms + 2ms + 1ms + 2ms);
  EXPECT_EQ(time(1, 2), 9ms);
  // Each of two cells has half of the network.
  EXPECT_EQ(time(2, 1), 1ms + 2ms + 1ms + 2ms + 2ms + 2ms);
}

TEST(CellTimes, PooledAndRelaysAgreeNearly) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Scenario scenario = test::random_sites(seed, 3);
    const GpuInventory inventory{scenario};
    CellTimes pooled{inventory, CellModel::pooled, 1};
    CellTimes relays{inventory, CellModel::relays, 1};
    const auto order = ordered_datacenters(inventory, SiteOrder::availability);
    const auto placement = greedy_placement(inventory, order, inventory.most_cells(2) * 2);
    if (!placement) continue;
    const CellQuery query{parse_schedule("atlas"), {*placement, inventory.most_cells(2), 2}};
    const CellTime one = pooled.times({{query}}).front();
    const CellTime two = relays.times({{query}}).front();
    ASSERT_EQ(one.failure, two.failure);
    // 1 MiB at 100 Gbps is 84 us: a scatter and a gather for each boundary and way.
    EXPECT_GE(static_cast<double>(two.time.count()), static_cast<double>(one.time.count()) * 0.98);
    EXPECT_LE(static_cast<double>(two.time.count()), static_cast<double>(one.time.count()) * 1.1);
  }
}

TEST(BreakEven, FindsTheBandwidthFromWhichTwoBeatOne) {
  const Scenario scenario = test::sites_scenario(4, 8, {12, 12}, 1ms, Bandwidth{5e9}, 1);
  BreakEvenOptions options;
  options.plan.schedule = parse_schedule("1f1b");
  const std::vector<Duration> latencies{0ms, 5ms, 10s};
  const auto points = break_even(scenario, DatacenterId{0}, DatacenterId{1}, latencies, options);
  ASSERT_EQ(points.size(), 3U);
  ASSERT_EQ(points[0].verdict, BreakEven::found);
  EXPECT_GT(points[0].two, points[0].one);
  EXPECT_EQ(points[2].verdict, BreakEven::never);
  // A thousandth below, one is as good: checked on the plans themselves.
  for (const double factor : {0.99, 1.01}) {
    Scenario near = scenario;
    for (Link& link : near.links) {
      link.latency = latencies[0];
      link.bandwidth = Bandwidth{points[0].bandwidth->bits_per_second() * factor};
    }
    const GpuInventory inventory{near};
    CellTimes cells{inventory};
    const SitePlans plans = algorithm1(
        inventory, {SiteOrder::availability, parse_schedule("1f1b"), 1, std::nullopt}, cells);
    const SitePlan* const best = best_plan(plans.plans, SiteObjective::throughput);
    EXPECT_EQ(best->layout.placement.size(), factor < 1 ? 1U : 2U);
  }
}

TEST(BreakEven, NodesThatAreSlowerThanTheLinkSettleIt) {
  Scenario scenario = test::sites_scenario(4, 8, {12, 12}, 1ms, Bandwidth{5e9}, 1);
  for (NodeInterfaces& nodes : scenario.nodes) nodes.egress = Bandwidth{1e6};
  BreakEvenOptions options;
  options.plan.schedule = parse_schedule("1f1b");
  const std::vector<Duration> latencies{1ms};
  const auto points = break_even(scenario, DatacenterId{0}, DatacenterId{1}, latencies, options);
  EXPECT_EQ(points.front().verdict, BreakEven::never);
}

// Links inside a site that take no time, as none does here without them.
TEST(BreakEven, ChangesNoLinkInsideASite) {
  Scenario scenario = test::sites_scenario(4, 8, {12, 12}, 1ms, Bandwidth{5e9}, 1);
  BreakEvenOptions options;
  options.plan.schedule = parse_schedule("1f1b");
  const std::vector<Duration> latencies{1ms};
  const auto point = [&] {
    return break_even(scenario, DatacenterId{0}, DatacenterId{1}, latencies, options).front();
  };
  const BreakEvenPoint without = point();
  ASSERT_EQ(without.verdict, BreakEven::found);
  for (const int site : {0, 1}) {
    Link inside;
    inside.from = inside.to = DatacenterId{site};
    scenario.links.push_back(inside);
  }
  const BreakEvenPoint with = point();
  ASSERT_EQ(with.verdict, BreakEven::found);
  EXPECT_EQ(with.bandwidth->bits_per_second(), without.bandwidth->bits_per_second());
  EXPECT_EQ(with.two, without.two);
}

}  // namespace
}  // namespace longhaul::planner

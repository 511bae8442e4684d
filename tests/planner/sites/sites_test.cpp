#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/search/makespan.hpp"
#include "planner/site_scenarios.hpp"
#include "planner/sites/algorithm1.hpp"
#include "planner/sites/cell_scenario.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::planner {
namespace {

using test::sites_scenario;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> stages_of(const StagePlacement& placement) {
  std::vector<int> stages;
  for (const DatacenterStages& share : placement) stages.push_back(share.stages);
  return stages;
}

std::string failure_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "no failure";
}

Algorithm1Options with(const std::string& schedule) {
  Algorithm1Options options;
  options.schedule = parse_schedule(schedule);
  return options;
}

TEST(Sites, TakeStagesAsAlgorithm1Says) {
  const Scenario two = test::sites_scenario(60, 60, {600, 600}, 10ms, Bandwidth{5e9}, 2);
  const GpuInventory inventory{two};
  EXPECT_EQ(inventory.most_cells(2), 10);
  const auto order = ordered_datacenters(inventory, SiteOrder::availability);
  EXPECT_THAT(stages_of(*greedy_placement(inventory, order, 10)), ElementsAre(60));
  EXPECT_THAT(stages_of(*greedy_placement(inventory, order, 12)), ElementsAre(50, 10));
  EXPECT_THAT(stages_of(*greedy_placement(inventory, order, 20)), ElementsAre(30, 30));
}

TEST(Sites, RefuseBlocksThatSlowBesideMessages) {
  Scenario two = test::sites_scenario(60, 60, {600, 600}, 10ms, Bandwidth{5e9}, 2);
  two.overlap.wan = 1.1;
  EXPECT_THAT(failure_of([&] { (void)GpuInventory{two}; }), HasSubstr("has an [overlap]"));
}

// Section 6.3: DC-set 2 with C = 4 uses all GPUs, more stages where there are more.
TEST(Sites, GiveLargerDatacentersMoreStages) {
  const Scenario set =
      test::sites_scenario(60, 60, {300, 600, 500, 200, 400}, 10ms, Bandwidth{5e9}, 4);
  const GpuInventory inventory{set};
  EXPECT_EQ(inventory.most_cells(4), 8);
  const auto order = ordered_datacenters(inventory, SiteOrder::availability);
  EXPECT_THAT(order, ElementsAre(DatacenterId{1}, DatacenterId{2}, DatacenterId{4}, DatacenterId{0},
                                 DatacenterId{3}));
  EXPECT_THAT(stages_of(*greedy_placement(inventory, order, 32)), ElementsAre(18, 15, 12, 9, 6));
}

TEST(Sites, OrderByPriceAndByDistance) {
  Scenario scenario = test::sites_scenario(4, 4, {8, 16, 4}, 10ms, Bandwidth{5e9}, 1);
  scenario.datacenters[0].price = 2;
  scenario.datacenters[2].price = 1;
  for (Link& link : scenario.links) {
    if (link.from == DatacenterId{1} && link.to == DatacenterId{2}) link.latency = 1ms;
  }
  const GpuInventory inventory{scenario};
  const DatacenterId a{0}, b{1}, c{2};
  EXPECT_THAT(ordered_datacenters(inventory, SiteOrder::availability), ElementsAre(b, a, c));
  EXPECT_THAT(ordered_datacenters(inventory, SiteOrder::price), ElementsAre(c, a, b));
  EXPECT_THAT(ordered_datacenters(inventory, SiteOrder::distance), ElementsAre(b, c, a));
}

TEST(Sites, CellSizeIsTransferOverForwardRoundedUp) {
  Scenario scenario = test::sites_scenario(4, 4, {8, 8}, 10ms, Bandwidth{8388608e3 / 2.5}, 1);
  scenario.parallel.cell.reset();
  const GpuInventory inventory{scenario};
  EXPECT_EQ(cell_size(inventory, ordered_datacenters(inventory, SiteOrder::availability)), 3);
}

// 1 MiB take 1.68 ms at 5 Gbps and 8.4 s at 1 Mbps: C = 2 between a and b, 255 to the third.
TEST(Sites, CellSizesGetSmallerWithTheSites) {
  Scenario scenario = test::sites_scenario(4, 4, {16, 12, 8}, 10ms, Bandwidth{5e9}, 1);
  scenario.parallel.cell.reset();
  for (Link& link : scenario.links)
    if (link.from == DatacenterId{2} || link.to == DatacenterId{2}) link.bandwidth = Bandwidth{1e6};
  const GpuInventory inventory{scenario};
  const auto order = ordered_datacenters(inventory, SiteOrder::availability);
  EXPECT_THAT(cell_sizes(inventory, order), ElementsAre(255, 2, 1));
  EXPECT_THAT(cell_sizes(inventory), ElementsAre(1, 2, 255));
  scenario.parallel.cell = 3;
  EXPECT_THAT(cell_sizes(inventory, order), ElementsAre(3));
}

TEST(Algorithm1, TakesSmallerCellsWhereTheLargestDoNotFit) {
  Scenario scenario = test::sites_scenario(4, 4, {16, 12, 8}, 10ms, Bandwidth{5e9}, 1);
  scenario.parallel.cell.reset();
  for (Link& link : scenario.links)
    if (link.from == DatacenterId{2} || link.to == DatacenterId{2}) link.bandwidth = Bandwidth{1e6};
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory};
  const SitePlans plans = algorithm1(inventory, with("1f1b"), cells);
  EXPECT_EQ(plans.pipelines, 2);
  EXPECT_NE(best_plan(plans.plans, SiteObjective::throughput), nullptr);
}

TEST(Algorithm1, CountsAnIterationByHand) {
  // P = M = 2, F = 1 ms, B = 2 ms: 1F1B in one datacenter takes (M + P - 1) (F + B) = 9 ms.
  Scenario scenario = test::sites_scenario(2, 2, {8}, 10ms, Bandwidth{5e9}, 2);
  scenario.nodes[0].internal = Bandwidth::unlimited();
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory};
  const SitePlans plans = algorithm1(inventory, with("1f1b"), cells);
  ASSERT_EQ(plans.plans.size(), 2U);
  EXPECT_EQ(plans.plans[1].times.pipeline, 9ms);
  EXPECT_EQ(plans.plans[1].times.all_reduce, 0ms);
  EXPECT_DOUBLE_EQ(plans.plans[1].figures.iterations_per_second, 4 / 0.009);
  EXPECT_DOUBLE_EQ(plans.plans[1].figures.utilisation, 6.0 / 9);
  EXPECT_EQ(plans.plans[1].figures.gpus_used, 8);
  EXPECT_EQ(cells.simulated(), 1);
}

TEST(Algorithm1, AllReduceIsARingInsideTheDatacenter) {
  const Scenario scenario = test::sites_scenario(2, 2, {16}, 10ms, Bandwidth{5e9}, 2);
  const GpuInventory inventory{scenario};
  // 2 * 3/4 of 8 MiB at 100 Gbps.
  EXPECT_EQ(all_reduce_inside(inventory, DatacenterId{0}, StageId{0}, 4),
            2 * (Bytes{8 << 20} * 3 / 4 / Bandwidth{100e9}));
  Scenario levels = scenario;
  std::erase_if(levels.links, [](const Link& link) { return link.from == link.to; });
  levels.nodes = {{.datacenter = DatacenterId{0},
                   .gpus = 2,
                   .egress = {},
                   .ingress = {},
                   .internal = Bandwidth{100e9},
                   .internal_latency = 3ms}};
  EXPECT_EQ(all_reduce_inside(GpuInventory{levels}, DatacenterId{0}, StageId{0}, 4),
            6 * 3ms + 2 * (Bytes{8 << 20} * 3 / 4 / Bandwidth{100e9}));
}

TEST(Algorithm1, WholeRunOnTheSimulatorAgrees) {
  Scenario scenario = test::sites_scenario(6, 8, {16, 8}, 3ms, Bandwidth{5e9}, 2);
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory};
  const SitePlans plans = algorithm1(inventory, with("1f1b"), cells);
  ASSERT_EQ(plans.plans.size(), 2U);
  for (const SitePlan& plan : plans.plans) {
    ASSERT_TRUE(plan.feasible()) << plan.infeasible;
    const Scenario placed = placed_scenario(inventory, plan.layout);
    EXPECT_EQ(makespan_of(schedule::generate("1f1b", placed), placed), plan.times.iteration());
  }
}

// Ended after three cells: each D under atlas first, and nothing is kept of what was left.
TEST(Algorithm1, HasAPlanOfEachDWhereItIsEnded) {
  const Scenario scenario = test::sites_scenario(4, 4, {6, 6, 6}, 10ms, Bandwidth{5e9}, 1);
  const GpuInventory inventory{scenario};
  Algorithm1Options options = with("1f1b");
  options.others = parse_schedules("zbv,cross-wave");
  CellTimes all{inventory, CellModel::relays, 1};
  const SitePlans whole = algorithm1(inventory, options, all);
  int asked = 0;
  CellTimes cells{inventory, CellModel::relays, 1, [&] { return ++asked > 3; }};
  const SitePlans ended = algorithm1(inventory, options, cells);
  EXPECT_EQ(all.simulated(), asked);
  EXPECT_EQ(cells.simulated(), 3);
  CellTimes first{inventory, CellModel::relays, 1};
  const SitePlans alone = algorithm1(inventory, with("1f1b"), first);
  ASSERT_EQ(first.simulated(), 3) << "one kind of cell for each D";
  ASSERT_EQ(ended.plans.size(), alone.plans.size());
  for (std::size_t i = 0; i < ended.plans.size(); ++i) {
    EXPECT_EQ(ended.plans[i].schedule, "1f1b");
    EXPECT_EQ(ended.plans[i].times.iteration(), alone.plans[i].times.iteration());
    EXPECT_LE(whole.plans[i].times.iteration(), ended.plans[i].times.iteration());
  }
}

TEST(Algorithm1, SaysWhyANumberOfCellsIsNotHeld) {
  const Scenario scenario = test::sites_scenario(3, 2, {5, 5}, 1ms, Bandwidth{5e9}, 1);
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory};
  const SitePlans plans = algorithm1(inventory, with("1f1b"), cells);
  ASSERT_EQ(plans.plans.size(), 3U);
  EXPECT_TRUE(plans.plans[1].feasible());
  EXPECT_THAT(plans.plans[2].infeasible, HasSubstr("hold 2 of 3 stages"));
}

TEST(Algorithm1, RefusesWhatCannotBePlanned) {
  const Scenario small = test::sites_scenario(12, 2, {5, 5}, 1ms, Bandwidth{5e9}, 1);
  EXPECT_THAT(failure_of([&] {
                const GpuInventory inventory{small};
                CellTimes cells{inventory};
                static_cast<void>(algorithm1(inventory, with("1f1b"), cells));
              }),
              HasSubstr("have 10 GPUs (dca, dcb), and one DP-cell needs 12"));
  Scenario apart = test::sites_scenario(6, 2, {5, 5}, 1ms, Bandwidth{5e9}, 1);
  apart.links.clear();
  EXPECT_THAT(failure_of([&] {
                const GpuInventory inventory{apart};
                CellTimes cells{inventory};
                static_cast<void>(algorithm1(inventory, with("1f1b"), cells));
              }),
              HasSubstr("no link from dca to dcb"));
  Scenario unknown = test::sites_scenario(6, 2, {5, 5}, 1ms, Bandwidth{5e9}, 1);
  unknown.datacenters[1].gpus.reset();
  EXPECT_THAT(failure_of([&] { const GpuInventory inventory{unknown}; }),
              HasSubstr("datacenter.dcb.gpus"));
  const Scenario plain = test::sites_scenario(6, 2, {5, 5}, 1ms, Bandwidth{5e9}, 1);
  const auto refusal_of = [&](const auto& change) {
    Scenario changed = plain;
    change(changed);
    return failure_of([&] { const GpuInventory inventory{changed}; });
  };
  EXPECT_THAT(refusal_of([](Scenario& s) { s.parallel.tensor = 2; }),
              HasSubstr("parallel.tensor = 2"));
  EXPECT_THAT(refusal_of([](Scenario& s) {
                s.parallel.replica_microbatches = {2, 3};
              }),
              HasSubstr("differ in costs, speeds or microbatches"));
  EXPECT_THAT(refusal_of([](Scenario& s) { s.services.emplace_back(); }), HasSubstr("[[service]]"));
}

TEST(Cost, IsCountedByHand) {
  Scenario scenario = test::sites_scenario(4, 3, {4, 4}, 1ms, Bandwidth{5e9}, 2);
  scenario.datacenters[0].price = 2;
  scenario.datacenters[1].price = 3;
  scenario.datacenters[0].egress_price = 0.1;
  const GpuInventory inventory{scenario};
  const SiteLayout layout{{{DatacenterId{0}, 2}, {DatacenterId{1}, 2}}, 1, 2};
  const SiteFigures figures = figures_of(inventory, layout, {1800s, 0ns, 0.5});
  EXPECT_EQ(figures.gpus_used, 8);
  EXPECT_DOUBLE_EQ(*figures.gpu_dollars_per_hour, 4 * 2 + 4 * 3);
  const double each_way = 2 * 3 * 1048576.0;  // pipelines, microbatches, 1 MiB
  EXPECT_DOUBLE_EQ(figures.egress_bytes, 2 * each_way);
  EXPECT_DOUBLE_EQ(figures.egress_dollars, each_way / 1e9 * 0.1);
  EXPECT_DOUBLE_EQ(*figures.dollars, 10 + figures.egress_dollars);
  EXPECT_DOUBLE_EQ(*figures.dollars_per_sample, *figures.dollars / 6);
  EXPECT_DOUBLE_EQ(figures.cost, *figures.dollars_per_sample);
}

TEST(Cost, ParetoLeavesOutWhatAnotherBeatsInBoth) {
  std::vector<SitePlan> plans(3);
  const double cost[] = {1, 2, 3};
  const int seconds[] = {3, 1, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    plans[i].times.pipeline = std::chrono::seconds{seconds[i]};
    plans[i].figures.cost = cost[i];
  }
  mark_pareto(plans);
  EXPECT_TRUE(plans[0].pareto);
  EXPECT_TRUE(plans[1].pareto);
  EXPECT_FALSE(plans[2].pareto);
}

// 600 GPUs and a tenth more (section 6.4): the tenth adds nothing.
TEST(Algorithm1, LeavesATenthOut) {
  const Scenario scenario = test::sites_scenario(60, 60, {600, 60}, 10ms, Bandwidth{5e9}, 2);
  const GpuInventory inventory{scenario};
  CellTimes cells{inventory};
  const SitePlans plans = algorithm1(inventory, with("1f1b"), cells);
  const SitePlan* const best = best_plan(plans.plans, SiteObjective::throughput);
  ASSERT_NE(best, nullptr);
  EXPECT_THAT(stages_of(best->layout.placement), ElementsAre(60));
}

}  // namespace
}  // namespace longhaul::planner

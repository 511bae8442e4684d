#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/bounds/bounds.hpp"
#include "planner/cell_scenarios.hpp"
#include "planner/make_schedule.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "planner/wan_sharing/turn_search.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/cell/in_cells.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// F 100, B 200; a message takes 200 alone and 100 with both nodes.
Scenario two_by_two(int microbatches) {
  Scenario scenario = uniform_scenario(2, microbatches);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::none;
  return spread(scenario, 2, Duration::zero(), Duration{200});
}

Schedule evenly(std::string_view name, const Scenario& scenario) {
  Schedule shared = schedule::in_cells(schedule::generate(name, scenario), scenario).or_throw();
  schedule::take_turns_evenly(shared, scenario);
  return shared;
}

TEST(TurnEvaluator, TwoPipelinesTakeTurns) {
  const Scenario scenario = two_by_two(1);
  const Schedule shared = evenly("1f1b", scenario);
  const TurnProblem problem{shared, scenario};
  TurnEvaluator times{problem};
  ASSERT_TRUE(times.evaluate(TurnOrders{problem}));
  // Both F end at 100. Pipeline 0 has the WAN from 100 to 200, pipeline 1 from 200 to 300.
  EXPECT_EQ(times.start(problem.rows[1][0]), 200);
  EXPECT_EQ(times.start(problem.rows[3][0]), 300);
  // B ends at 500 and 600; gradients take 100 each; B in front ends at 800 and 900.
  EXPECT_EQ(times.end(problem.rows[0][1]), 800);
  EXPECT_EQ(times.end(problem.rows[2][1]), 900);
  EXPECT_EQ(times.makespan(), 900);
  EXPECT_EQ(makespan_of(shared, scenario), Duration{900});
  // Each with its own share: 100, 200, 100 + 200, 200, 200.
  EXPECT_EQ(makespan_of(schedule::generate("1f1b", scenario), scenario), Duration{1000});
}

TEST(TurnEvaluator, SeesOrdersThatWaitForEachOther) {
  const Scenario scenario = two_by_two(3);
  const TurnProblem problem{evenly("1f1b", scenario), scenario};
  TurnEvaluator times{problem};
  TurnOrders orders{problem};
  // Stage 0 runs F0 F1 B0 F2 B1 B2: where F2 has its turn before F0, B0 never comes.
  std::swap(orders.turns.front().front(), orders.turns.front().back());
  EXPECT_FALSE(times.evaluate(orders));
}

TEST(TurnEvaluator, TheCriticalPathEndsWhereTheIterationDoes) {
  const Scenario scenario = two_by_two(1);
  const TurnProblem problem{evenly("1f1b", scenario), scenario};
  TurnEvaluator times{problem};
  const TurnOrders orders{problem};
  ASSERT_TRUE(times.evaluate(orders));
  TurnEvaluator::Critical path;
  times.critical_path(orders, path);
  EXPECT_EQ(path.blocks.front(), problem.rows[2][1]);
  std::int64_t blocks = 0;
  for (const CellBlockId id : path.blocks)
    blocks += problem.blocks[static_cast<std::size_t>(id)].time;
  // F 100, turn of the other 100, own 100, F and B 300, 100, B 200: the message of the other
  // pipeline stands for its F.
  EXPECT_EQ(blocks + 100 * static_cast<std::int64_t>(path.messages.size()), 900);
}

// Blocks and messages that take no time leave what the reductions of a device take in a row.
TEST(TurnEvaluator, ReductionsBeginWhenTheirGradientsAreThere) {
  const Scenario scenario = two_by_two(1);
  TurnProblem problem{evenly("1f1b", scenario), scenario};
  problem.reductions = {{{ChunkId{0}, 5}, {ChunkId{1}, 7}}};
  TurnEvaluator times{problem};
  ASSERT_TRUE(times.evaluate(TurnOrders{problem}));
  EXPECT_EQ(times.makespan(), 900 + 5 + 7);
  for (TurnProblem::OfBlock& block : problem.blocks) block.time = 0;
  for (TurnProblem::OfMessage& message : problem.messages) message.transfer = message.latency = 0;
  ASSERT_TRUE(times.evaluate(TurnOrders{problem}));
  EXPECT_EQ(times.makespan(), 5 + 7);
}

TEST(TurnRules, RankServesOnePipelineFirst) {
  const Scenario scenario = two_by_two(3);
  const TurnProblem problem{evenly("gpipe", scenario), scenario};
  TurnEvaluator times{problem};
  TurnOrders orders{problem};
  ASSERT_TRUE(take_turns(problem, orders, TurnRule::rank, times));
  std::vector<int> ranks;
  for (const CellMessageId id : orders.turns.front()) {
    const CellBlockId producer = problem.messages[static_cast<std::size_t>(id)].producer;
    ranks.push_back(problem.blocks[static_cast<std::size_t>(producer)].row / problem.devices);
  }
  // F and the pooled transfer take 100 each: whenever the link is free, pipeline 0 has a message.
  EXPECT_EQ(ranks, (std::vector<int>{0, 0, 0, 1, 1, 1}));
  ASSERT_TRUE(take_turns(problem, orders, TurnRule::microbatch, times));
  const std::int64_t by_rule = times.makespan();
  ASSERT_TRUE(times.evaluate(orders));
  EXPECT_EQ(times.makespan(), by_rule);
}

TEST(ShareWanBySimulation, IsNoWorseThanAnyRule) {
  Random random{5};
  for (int i = 0; i < 40; ++i) {
    const Scenario scenario = test::random_cells(random);
    if (!schedule::shares_wan(scenario)) continue;
    const Schedule plain = schedule::generate(i % 2 == 0 ? "1f1b" : "zb-h1", scenario);
    const Schedule shared = share_wan(plain, scenario);
    EXPECT_FALSE(schedule::first_violation(shared));
    const Duration makespan = makespan_of(shared, scenario);
    EXPECT_LE(makespan, makespan_of(evenly(plain.name, scenario), scenario)) << i;
    EXPECT_GE(makespan, lower_bound(shared, scenario).lower_bound) << i;
    const Schedule read = schedule::read_csv(schedule::write_csv(shared), "shared.csv", "shared");
    EXPECT_EQ(read, shared);
    EXPECT_EQ(makespan_of(read, scenario), makespan);
  }
}

TEST(TurnProblem, TimesAreTheSimulatorsWhereNodesShareNothing) {
  Random random{7};
  int checked = 0;
  for (int i = 0; i < 60; ++i) {
    const Scenario scenario = test::random_cells(random);
    // A node that sends both ways, or relays inside its datacenter, serves several queues.
    if (!schedule::shares_wan(scenario) || !scenario.nodes.empty()) continue;
    const Schedule shared = share_wan(schedule::generate("1f1b", scenario), scenario);
    const TurnProblem problem{shared, scenario};
    TurnEvaluator times{problem};
    ASSERT_TRUE(times.evaluate(TurnOrders{problem}));
    if (scenario.parallel.gradient_sync == GradientSync::none) ++checked;
    EXPECT_EQ(times.makespan(), makespan_of(shared, scenario).count()) << i;
  }
  EXPECT_GT(checked, 3);
}

TEST(MakeSchedule, SharesUnderEveryName) {
  const Scenario scenario = test::figure_6();
  const auto made = make_schedule("atlas+1f1b", scenario).schedule;
  EXPECT_EQ(made.name, "atlas+1f1b");
  EXPECT_EQ(made.cell, 2);
  for (const ScheduleRequest& requested : parse_schedules("shared")) {
    EXPECT_TRUE(requested.from_group);
    try {
      static_cast<void>(
          schedule::generate(requested.name.substr(requested.name.find('+') + 1), scenario));
    } catch (const Error&) {
      continue;  // not defined here
    }
    const Schedule shared = make_schedule(requested.name, scenario).schedule;
    EXPECT_EQ(shared.name, requested.name);
    EXPECT_EQ(shared.cell, 2);
    EXPECT_FALSE(schedule::first_violation(shared));
  }
  EXPECT_THROW(static_cast<void>(parse_schedules("atlas+atlas")), Error);
  EXPECT_THROW(static_cast<void>(parse_schedules("atlas+1f1p")), Error);
}

}  // namespace
}  // namespace longhaul::planner

#include "prefill/lowering/filled_plan.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/rows.hpp"
#include "sim/simulate.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul::prefill {
namespace {

using Stretch = testing::PlacedStretch;

Scenario two_stages(int replicas = 1, int stages = 1) {
  Scenario scenario = serving_scenario(2, replicas, linear_model(1ms, stages));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.parallel.gradient_sync = GradientSync::none;
  return scenario;
}

/// Training's ops that take other times than without prefills.
int moved(const Stretch& stretch, const FilledPlan& filled, const OpResults& results) {
  int count = 0;
  for (std::size_t i = 0; i < stretch.times.size(); ++i) {
    const OpTime& now = results.times[index(filled.training[i])];
    count += now.start != stretch.times[i].start || now.end != stretch.times[i].end;
  }
  return count;
}

int bound_by_prefill(const FilledPlan& filled, const OpResults& results) {
  int count = 0;
  for (const OpId op : filled.training)
    count += std::ranges::any_of(filled.stages, [&](const FilledStage& stage) {
      return results.times[index(op)].bound_by == stage.op;
    });
  return count;
}

TEST(FilledPlan, PlaysThePlacementsTimesToTheNanosecond) {
  const Stretch stretch{two_stages(), "gpipe", 2};
  EXPECT_EQ(stretch.bubbles.period, 1800ms);
  const auto decisions =
      stretch.place({{0, 250ms, 100}, {1, 450ms, 100}, {2, 450ms, 100}, {3, 450ms, 400}});
  const FilledPlan filled = stretch.fill(decisions);
  ASSERT_EQ(filled.stages.size(), 3U) << "400 ms fit into no bubble";
  const OpResults results = sim::simulate_results(filled.plan);
  const auto start = [&](std::size_t i) { return results.times[index(filled.stages[i].op)].start; };
  EXPECT_EQ(start(0), 250ms);
  EXPECT_EQ(start(1), 700ms);
  EXPECT_EQ(start(2), 800ms);
  EXPECT_EQ(moved(stretch, filled, results), 0);
}

TEST(FilledPlan, HasNoStageBehindItsEnd) {
  const Stretch stretch{two_stages(2, 2), "gpipe", 1};
  auto decisions = stretch.place({{0, 700ms, 200}});
  EXPECT_EQ(stretch.fill(decisions).stages.back().placed.end(), 900ms);
  decisions.front().start += 1ms;
  EXPECT_DEATH((void)stretch.fill(decisions), "ends at 901000000 ns, the plan at 900000000 ns");
}

TEST(FilledPlan, PassesActivationsBetweenStages) {
  Scenario scenario = two_stages(2, 2);
  scenario.served.front().hop = 10ms;
  const Stretch stretch{scenario, "gpipe", 1};
  const FilledPlan filled = stretch.fill(stretch.place({{7, 200ms, 100}}));
  ASSERT_EQ(filled.stages.size(), 2U);
  const OpResults results = sim::simulate_results(filled.plan);
  EXPECT_EQ(results.times[index(filled.stages[0].op)].start, 200ms);
  EXPECT_EQ(results.times[index(filled.stages[1].op)].end, 310ms);
  Timeline timeline;
  plan::append_rows(timeline, filled.plan, results, 0);
  int prefills = 0, sides = 0;
  for (const TimelineRow& row : timeline.rows) {
    prefills += row.kind == RowKind::prefill;
    sides += is_message(row.kind) && row.request == 7;
    EXPECT_EQ(row.request >= 0, row.tokens == 100);
  }
  EXPECT_EQ(prefills, 2);
  EXPECT_EQ(sides, 2);
  EXPECT_EQ(to_text(filled.plan, filled.stages[1].op),
            "rank 2 (dc0, stage 0, replica 1): prefill of request 7");
}

// 350 ms where 100 were estimated: until 550, on a device whose next block is due at 500.
TEST(FilledPlan, LetsABlockWaitForAPrefillThatTakesLonger) {
  const Stretch stretch{two_stages(), "gpipe", 1};
  FilledPlan filled = stretch.fill(stretch.place({{0, 200ms, 100}}));
  filled.plan.ops[index(filled.stages.front().op)].duration = 350ms;
  for (plan::OpWindow& window : filled.plan.extras.windows) window.deadline = plan::kNoDeadline;
  const OpResults results = sim::simulate_results(filled.plan);
  EXPECT_EQ(moved(stretch, filled, results), 2);
  EXPECT_EQ(bound_by_prefill(filled, results), 1);
  Duration end{};
  for (const OpId op : filled.training) end = std::max(end, results.times[index(op)].end);
  EXPECT_EQ(end, stretch.bubbles.period + 50ms);
}

// The rank has the last word.
TEST(FilledPlan, DeclinesAPrefillThatWouldEndBehindTheNextBlock) {
  const Stretch stretch{two_stages(2, 2), "gpipe", 1};
  FilledPlan filled = stretch.fill(stretch.place({{0, 200ms, 100}}));
  filled.plan.ops[index(filled.stages[0].op)].duration = 301ms;
  const OpResults results = sim::simulate_results(filled.plan);
  for (const FilledStage& stage : filled.stages)
    EXPECT_EQ(results.outcomes[index(stage.op)], longhaul::Outcome::skipped) << stage.placed.stage;
  EXPECT_EQ(moved(stretch, filled, results), 0);
}

TEST(FilledPlan, CarelessPrefillsDelayTraining) {
  const Stretch stretch{two_stages(), "gpipe", 1};
  const auto decisions = stretch.place({{0, 0ms, 290}, {1, 20ms, 200}});
  const FilledPlan filled = stretch.fill(decisions, Manners::careless);
  const OpResults results = sim::simulate_results(filled.plan);
  EXPECT_GT(moved(stretch, filled, results), 0);
  EXPECT_GT(bound_by_prefill(filled, results), 0);
}

// Device 0 is idle from 200 to 500 ms: the second prompt fits there, and arrives later.
TEST(FilledPlan, StartsNoCarelessPrefillBeforeItsRequestArrives) {
  const Stretch stretch{two_stages(), "gpipe", 2};
  auto decisions = stretch.place({{0, 200ms, 100}, {1, 1100ms, 100}});
  ASSERT_EQ(decisions[0].pipeline, decisions[1].pipeline);
  const FilledPlan filled = stretch.fill(decisions, Manners::careless);
  const OpResults results = sim::simulate_results(filled.plan);
  for (const FilledStage& stage : filled.stages)
    EXPECT_GE(results.times[index(stage.op)].start, decisions[stage.placed.decision].arrival);
}

TEST(FilledPlan, ChangesNoTimeOfTrainingAndKeepsThoseOfThePlacement) {
  std::size_t placed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Stretch stretch = testing::random_stretch(random);
    const auto decisions = stretch.place(testing::random_requests(random));
    const FilledPlan filled = stretch.fill(decisions);
    const OpResults results = sim::simulate_results(filled.plan);
    EXPECT_EQ(moved(stretch, filled, results), 0);
    for (const FilledStage& stage : filled.stages) {
      EXPECT_EQ(results.times[index(stage.op)].start, stage.placed.start);
      EXPECT_EQ(results.times[index(stage.op)].end, stage.placed.end());
    }
    placed += filled.stages.size();
  }
  EXPECT_GT(placed, 400U);
}

}  // namespace
}  // namespace longhaul::prefill

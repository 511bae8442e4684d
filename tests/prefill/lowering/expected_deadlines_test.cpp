#include "prefill/lowering/expected_deadlines.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "sim/simulate.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul::prefill {
namespace {

using Stretch = testing::PlacedStretch;

/// Blocks of the plan of training that take longer than planned, a third of them.
std::vector<Duration> late_blocks(const Plan& training, Random& random) {
  std::vector<Duration> takes;
  for (const Op& op : training.ops) {
    takes.push_back(op.duration);
    if (op.kind == OpKind::compute && random.between(0, 2) == 0)
      takes.back() += Duration{random.between(1, 20'000)};
  }
  return takes;
}

OpResults played_late(FilledPlan filled, const std::vector<Duration>& takes) {
  for (std::size_t i = 0; i < takes.size(); ++i)
    filled.plan.ops[index(filled.training[i])].duration = takes[i];
  return sim::simulate_results(filled.plan);
}

bool ran(const FilledStage& stage, const OpResults& results) {
  return results.outcomes.empty() || results.outcomes[index(stage.op)] == longhaul::Outcome::ran;
}

// Device 0 is idle from 200 to 500 ms; where its first block takes 3 ms longer, from 203 to 503.
TEST(ExpectedDeadlines, MoveWithTraining) {
  Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.parallel.gradient_sync = GradientSync::none;
  const Stretch stretch{scenario, "gpipe", 1};
  const auto decisions = stretch.place({{0, 200ms, 100}, {1, 200ms, 200}});
  ASSERT_EQ(decisions[1].start, 300ms);
  std::vector<Duration> takes;
  for (const Op& op : stretch.plan.ops) takes.push_back(op.duration);
  takes[index(stretch.plan.lane_of(OpId{0}).first)] += 3ms;
  FilledPlan filled = stretch.fill(decisions);
  const OpResults results = played_late(filled, takes);
  EXPECT_EQ(results.times[index(filled.stages[0].op)].start, 203ms);
  EXPECT_EQ(results.times[index(filled.stages[1].op)].start, 303ms) << "at once after the first";
  EXPECT_EQ(results.times[index(filled.stages[1].op)].end, 503ms);
  const FilledPlan stays = stretch.fill_as_said(decisions, {});
  EXPECT_FALSE(ran(stays.stages[1], played_late(stays, takes)));
  filled.plan.ops[index(filled.stages[1].op)].duration += Duration{1};
  EXPECT_FALSE(ran(filled.stages[1], played_late(filled, takes)));
}

TEST(ExpectedDeadlines, ChangeNoTimeOfTrainingThatIsLate) {
  std::size_t run = 0, run_where_deadlines_stay = 0;
  for (std::uint64_t seed = 500; seed < 560; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Stretch stretch = testing::random_stretch(random);
    const auto decisions = stretch.place(testing::random_requests(random));
    Plan late = stretch.plan;
    const std::vector<Duration> takes = late_blocks(late, random);
    for (std::size_t i = 0; i < takes.size(); ++i) late.ops[i].duration = takes[i];
    const OpTimes alone = sim::simulate(late);
    const FilledPlan filled = stretch.fill(decisions);
    const OpResults results = played_late(filled, takes);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      const OpTime& own = results.times[index(filled.training[i])];
      ASSERT_EQ(own.start, alone[i].start) << to_text(late, OpId{static_cast<std::uint32_t>(i)});
      ASSERT_EQ(own.end, alone[i].end);
    }
    const FilledPlan stays = stretch.fill_as_said(decisions, {});
    const OpResults before = played_late(stays, takes);
    for (std::size_t i = 0; i < filled.stages.size(); ++i) {
      run += ran(filled.stages[i], results) ? 1 : 0;
      run_where_deadlines_stay += ran(stays.stages[i], before) ? 1 : 0;
    }
  }
  EXPECT_GT(run_where_deadlines_stay, 100U);
  EXPECT_GT(run, run_where_deadlines_stay + 20);
}

}  // namespace
}  // namespace longhaul::prefill

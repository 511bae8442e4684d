#include "plan/rewrite/with_operators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/operators.hpp"
#include "support/plans.hpp"
#include "support/same_plan.hpp"

namespace longhaul::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The steps of the optimizer on a rank, as (chunk, duration, texts of what each waits for).
std::vector<std::string> steps_of(const Plan& plan, int rank) {
  std::vector<std::string> text;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = plan.op(id);
    if (!is_optimizer_step(op) || plan.rank_of(id) != Rank{rank}) continue;
    text.push_back(fmt::format("{} {}", op.chunk, op.duration.count()));
    for (const OpId before : plan.after_of(id)) {
      const Op& waited = plan.op(before);
      text.back() += fmt::format(" after {} {}", longhaul::to_string(waited.kind),
                                 waited.kind == OpKind::recv ? number(waited.microbatch) : -1);
    }
  }
  return text;
}

Scenario replicated(GradientSync sync) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.replicas = 3;
  scenario.parallel.gradient_sync = sync;
  scenario.placement.assign(6, DatacenterId{0});
  testing::cut_by(testing::operators_of({1, 2, 3, 4}), scenario);
  return scenario;
}

TEST(WithOptimizerSteps, StandAtTheEndOfEachRank) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.costs.optimizer = {7ns, 9ns};
  const Schedule wave = schedule::generate("zbv", scenario);
  const Plan plan = lower(wave, scenario);
  EXPECT_THAT(steps_of(plan, 0), ElementsAre("3 3", "0 4"));  // the remainder on the first
  EXPECT_THAT(steps_of(plan, 1), ElementsAre("2 4", "1 5"));
  const Lane& compute = plan.lanes.front();
  EXPECT_TRUE(is_optimizer_step(plan.ops[index(compute.first) + compute.count - 1]));
}

TEST(WithOptimizerSteps, WaitForTheSumsOfTheirGradients) {
  // A ring of three: steps 0 and 1 sum, and for an all-reduce 2 and 3 pass the sums on.
  const Scenario scatter = replicated(GradientSync::zero1);
  const Schedule schedule = schedule::generate("1f1b", scatter);
  const Plan plan = with_optimizer_steps(lower(schedule, scatter), schedule, scatter);
  EXPECT_THAT(steps_of(plan, 2), ElementsAre("0 0 after recv 1"));
  const Scenario reduce = replicated(GradientSync::all_reduce);
  const Plan all = with_optimizer_steps(lower(schedule, reduce), schedule, reduce);
  ASSERT_EQ(steps_of(all, 3).size(), 1U);
  EXPECT_THAT(steps_of(all, 3).front(), HasSubstr("after recv 3"));
  const Scenario estimate = replicated(GradientSync::ring_rate);
  const Plan whole = with_optimizer_steps(lower(schedule, estimate), schedule, estimate);
  EXPECT_THAT(steps_of(whole, 3), ElementsAre("1 0 after collective -1"));
}

TEST(WithOptimizerSteps, LeaveAllElseAsItWas) {
  const Scenario scenario = replicated(GradientSync::zero1);
  const Schedule schedule = schedule::generate("zb-h1", scenario);
  const Plan before = lower(schedule, scenario);
  const Plan plan = with_optimizer_steps(before, schedule, scenario);
  ASSERT_EQ(plan.ops.size(), before.ops.size() + 6);
  std::vector<std::string> texts[2];
  for (std::size_t i = 0; i < before.ops.size(); ++i)
    texts[0].push_back(to_text(before, OpId{static_cast<std::uint32_t>(i)}));
  for (std::size_t i = 0; i < plan.ops.size(); ++i)
    if (!is_optimizer_step(plan.ops[i]))
      texts[1].push_back(to_text(plan, OpId{static_cast<std::uint32_t>(i)}));
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(WithOperators, RefersEachBlockToItsList) {
  const Scenario scenario = replicated(GradientSync::none);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const Plan plan = with_operators(lower(schedule, scenario), schedule, scenario).or_throw();
  EXPECT_EQ(plan.granularity, Granularity::blocks);
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::compute) continue;
    const auto list = plan.operators->list(OperatorListId{op.match});
    ASSERT_FALSE(list.empty());
    EXPECT_EQ(list.back().end, op.duration);
  }
  // F and B of two chunks, and the optimizer's step: six ranks share five lists.
  EXPECT_EQ(plan.operators->begin.size(), 2U + 5);
}

TEST(WithOperators, RefusesAScenarioThatKnowsNone) {
  const Scenario scenario = uniform_scenario(2, 2);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const Result<Plan> plan = with_operators(lower(schedule, scenario), schedule, scenario);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.refusal().reason,
            "nothing says which operators the blocks of uniform have (the scenario has neither "
            "[model] nor [[operator]]). Add one of them, or use --granularity block.");
}

TEST(LowerAt, MakesAPlanOfEitherGranularity) {
  const Scenario scenario = replicated(GradientSync::none);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  EXPECT_EQ(testing::plan_difference(lower_at(Granularity::blocks, schedule, scenario),
                                     lower(schedule, scenario)),
            "");
  const Plan inside = lower_at(Granularity::operators, schedule, scenario);
  // 2 operators a chunk: F has 2, B has 4; 3 replicas, 2 stages, 2 microbatches.
  const auto computes = std::ranges::count(inside.ops, OpKind::compute, &Op::kind);
  EXPECT_EQ(computes, 3 * 2 * (2 * (2 + 4) + 1));
}

}  // namespace
}  // namespace longhaul::plan

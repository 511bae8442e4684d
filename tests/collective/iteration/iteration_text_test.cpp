#include "collective/iteration/iteration_text.hpp"

#include <gtest/gtest.h>

#include "collective/iteration/lower_iteration.hpp"
#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

/// Two stages of two copies of the weights.
Scenario of_stages_and_copies() {
  return testing::centauri_toy({"parallel.replicas=4", "parallel.shard=2", "parallel.stages=2",
                                "parallel.microbatches=2", "costs.message=1MB"});
}

/// Ops, and what each waits for.
void expect_same_plan(const Plan& a, const Plan& b) {
  ASSERT_EQ(a.ops.size(), b.ops.size());
  EXPECT_EQ(a.ops, b.ops);
  for (std::uint32_t i = 0; i < a.ops.size(); ++i) {
    const auto before = a.after_of(OpId{i});
    const auto other = b.after_of(OpId{i});
    EXPECT_TRUE(std::ranges::equal(before, other)) << i;
  }
}

TEST(IterationText, IsTheIterationOpForOp) {
  const Scenario scenario = of_stages_and_copies();
  for (const Overlap& overlap : overlaps()) {
    SCOPED_TRACE(overlap.name);
    const IterationPlan plan = testing::planned_iteration(scenario, overlap.name, "1f1b");
    const std::string text = to_text(plan);
    const IterationPlan read =
        read_iteration(text, *plan.schedule, scenario, Arrangement::decoupled).or_throw();
    EXPECT_EQ(to_text(read), text);
    EXPECT_EQ(read.scenario->parallel.gradient_sync, plan.scenario->parallel.gradient_sync);
    expect_same_plan(lower_iteration(plan).or_throw().plan, lower_iteration(read).or_throw().plan);
  }
}

TEST(IterationText, TellsAnOrderThatDiffers) {
  const Scenario scenario = of_stages_and_copies();
  IterationPlan plan = testing::planned_iteration(scenario, "zero3", "1f1b");
  const std::string text = to_text(plan);
  std::swap(plan.stages.front().order.front(), plan.stages.front().order.back());
  EXPECT_NE(to_text(plan), text);
}

}  // namespace
}  // namespace longhaul::collective

#include "plan/rewrite/expand.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "plan/rewrite/draft.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "schedule/generators/generate.hpp"
#include "support/operators.hpp"
#include "support/plans.hpp"
#include "support/same_plan.hpp"

namespace longhaul::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::plan_difference;

/// 2 stages of F 6, D 12 and W 6 ns in 2 and 1 operators; messages of 10 ns and 40 ns latency.
Scenario two_stages() {
  Scenario scenario = spread(uniform_scenario(2, 2), 2, 40ns, 10ns);
  testing::cost_by(testing::operators_of({1, 5, 6}), scenario);
  return scenario;
}

Plan shared_plan(const Scenario& scenario, const char* name = "zb-h1") {
  const Schedule schedule = schedule::generate(name, scenario);
  return with_operators(lower(schedule, scenario), schedule, scenario).or_throw();
}

TEST(Expand, MakesEachOperatorAnOpAtItsBlocksPlace) {
  const Plan shared = shared_plan(two_stages());
  const Plan inside = expand(shared);
  EXPECT_EQ(inside.granularity, Granularity::operators);
  std::vector<std::string> lane;
  for (std::uint32_t i = 0; i < 4; ++i)
    lane.push_back(to_text(inside, OpId{i}) + " " + std::to_string(inside.ops[i].duration.count()));
  EXPECT_THAT(lane, ElementsAre("rank 0 (dc0, stage 0): a of F(chunk 0, microbatch 0) 1",
                                "rank 0 (dc0, stage 0): b of F(chunk 0, microbatch 0) 5",
                                "rank 0 (dc0, stage 0): a of F(chunk 0, microbatch 1) 1",
                                "rank 0 (dc0, stage 0): b of F(chunk 0, microbatch 1) 5"));
}

TEST(Expand, DependenciesJoinTheEndsOfBlocks) {
  const Plan inside = expand(shared_plan(two_stages()));
  const OpId send = testing::find(inside, 0, OpKind::send, BlockKind::F, 0);
  EXPECT_THAT(inside.after_of(send), ElementsAre(OpId{1}));  // b of F(0, 0)
  const OpId backward = testing::find(inside, 0, OpKind::compute, BlockKind::D, 0);
  const OpId arrival = testing::find(inside, 0, OpKind::recv, BlockKind::D, 0);
  EXPECT_THAT(inside.after_of(backward), ElementsAre(arrival));
  EXPECT_EQ(inside.op(next(backward)).after_count, 0);
  EXPECT_EQ(inside.op(OpId{inside.op(send).match}).match, index(send));
}

TEST(Expand, MemoryIsTakenWithTheFirstAndReleasedWithTheLast) {
  const Scenario scenario = two_stages();
  const Plan inside = expand(shared_plan(scenario));
  EXPECT_EQ(inside.ops[0].size, scenario.costs.activation[0]);
  EXPECT_EQ(inside.ops[1].size, Bytes{});
  const OpId backward = testing::find(inside, 0, OpKind::compute, BlockKind::D, 0);
  EXPECT_EQ(inside.op(backward).size, Bytes{});
  EXPECT_EQ(inside.op(next(backward)).size, -(scenario.costs.activation[0] / 2));
}

TEST(Expand, CutsBlocksThatTakeAnotherTimeInTheSameProportion) {
  Plan slow = shared_plan(two_stages());
  slow.ops[0].duration = 13ns;
  const Plan inside = expand(slow);
  EXPECT_EQ(inside.ops[0].duration, 2ns);  // 2.17
  EXPECT_EQ(inside.ops[1].duration, 11ns);
}

TEST(Expand, CountsWhatLiesBelow) {
  const OperatorCount count = count_operators(shared_plan(two_stages()));
  EXPECT_EQ(count.blocks, 2U * 2 * 3 + 2);  // and an optimizer's step each
  EXPECT_EQ(count.operators, 2U * 3 * (2 + 1) + 2);
  EXPECT_EQ(count.lists, 6U);  // F and W of chunk 1 are one
}

TEST(Fold, GivesBackWhatWasExpanded) {
  const Scenario scenario = two_stages();
  for (const char* name : {"1f1b", "zb-h1", "gpipe", "cross-ud-sub", "interleaved-1f1b"}) {
    const Plan shared = shared_plan(scenario, name);
    EXPECT_EQ(plan_difference(fold(expand(shared)).or_throw(), shared), "") << name;
  }
}

/// What fold() says of a plan of operators that `change` has rewritten.
template <typename Change>
std::string refusal_of(Change change) {
  Draft draft = thaw(expand(shared_plan(two_stages())));
  change(draft);
  const Result<Plan> folded = fold(freeze(draft));
  return folded ? "folded" : folded.refusal().reason;
}

TEST(Fold, RefusesWhatOverlapsInsideABlock) {
  const auto handle = [](std::uint32_t op) { return Draft::Handle{op}; };
  const LaneId compute{};
  EXPECT_EQ(refusal_of([](Draft&) {}), "folded");
  EXPECT_THAT(refusal_of([&](Draft& draft) {
                const Plan inside = expand(shared_plan(two_stages()));
                const OpId send = testing::find(inside, 0, OpKind::send, BlockKind::F, 0);
                const Draft::Handle sent{static_cast<std::uint32_t>(index(send))};
                draft.remove_after(sent, handle(1));
                draft.add_after(sent, handle(0));
              }),
              HasSubstr("waits for rank 0 (dc0, stage 0): a of F(chunk 0, microbatch 0), not for "
                        "the end of its block, so that a block of the plan is no unit"));
  EXPECT_THAT(refusal_of([&](Draft& draft) { draft.add_after(handle(3), handle(1)); }),
              HasSubstr("b of F(chunk 0, microbatch 1) waits for"));
  EXPECT_THAT(refusal_of([&](Draft& draft) { draft.move(handle(2), compute, 1); }),
              HasSubstr("stands where its block's list has another"));
  EXPECT_THAT(refusal_of([&](Draft& draft) { draft.op(handle(1)).duration = 30ns; }),
              HasSubstr("stands where its block's list has another"));
}

}  // namespace
}  // namespace longhaul::plan

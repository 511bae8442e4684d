#include "plan/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::plan {
namespace {

/// Two pipelines of one device each, one cell: replica 0's piece 1 goes to rank 1, which takes it
/// on.
TEST(Describe, SaysOnWhichLegAndForWhom) {
  Plan plan;
  plan.replicas = plan.cell = 2;
  plan.datacenters = {"west"};
  plan.ranks = {{ReplicaId{0}, DeviceId{0}, DatacenterId{0}},
                {ReplicaId{1}, DeviceId{0}, DatacenterId{0}}};
  Op op;
  op.kind = OpKind::send;
  op.leg = MessageLeg::scatter;
  op.chunk = ChunkId{1};
  op.microbatch = MicrobatchId{3};
  op.piece = 1;
  op.pieces = 2;
  op.peer = Rank{1};
  plan.ops.push_back(op);
  op.kind = OpKind::recv;
  op.peer = Rank{0};
  op.lane = LaneId{1};
  plan.ops.push_back(op);
  op.kind = OpKind::send;
  op.leg = MessageLeg::wan;
  op.peer = Rank{7};
  plan.ops.push_back(op);
  plan.lanes = {{"scatter>1", OpKind::send, Rank{0}, Rank{1}, OpId{0}, 1},
                {"scatter<0", OpKind::recv, Rank{1}, Rank{0}, OpId{1}, 2}};
  EXPECT_EQ(to_text(plan, OpId{0}),
            "rank 0 (west, stage 0, replica 0): send of piece 1 of F(chunk 1, microbatch 3) to "
            "rank 1 (scatter)");
  EXPECT_EQ(to_text(plan, OpId{1}),
            "rank 1 (west, stage 0, replica 1): receive of piece 1 of replica 0's F(chunk 1, "
            "microbatch 3) from rank 0 (scatter)");
  EXPECT_EQ(to_text(plan, OpId{2}),
            "rank 1 (west, stage 0, replica 1): relaying piece 1 of replica 0's F(chunk 1, "
            "microbatch 3) to rank 7 (wan)");
}

/// The only dependency of an op lies in the op; several lie in the plan's table, as they were
/// added.
TEST(Plan, KeepsTheDependenciesOfEachOpInTheirOrder) {
  using ::testing::ElementsAre;
  Plan plan;
  plan.ops.resize(4);
  plan.add_after(plan.ops[1], OpId{7});
  for (const OpId before : {OpId{9}, OpId{4}, OpId{5}}) plan.add_after(plan.ops[2], before);
  for (const OpId before : {OpId{2}, OpId{0}}) plan.add_after(plan.ops[3], before);
  EXPECT_THAT(plan.after_of(OpId{0}), ::testing::IsEmpty());
  EXPECT_THAT(plan.after_of(OpId{1}), ElementsAre(OpId{7}));
  EXPECT_THAT(plan.after_of(OpId{2}), ElementsAre(OpId{9}, OpId{4}, OpId{5}));
  EXPECT_THAT(plan.after_of(OpId{3}), ElementsAre(OpId{2}, OpId{0}));
  const Plan copy = plan;
  EXPECT_THAT(copy.after_of(OpId{1}), ElementsAre(OpId{7}));
}

}  // namespace
}  // namespace longhaul::plan

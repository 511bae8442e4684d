#include "plan/lowering/lower_collective.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "support/collectives.hpp"

namespace longhaul::plan {
namespace {

using testing::flat;

Plan lowered(const Collective& collective) {
  return lower_collective(collective, testing::scenario_of({.nodes = 2,
                                                            .gpus = 2,
                                                            .interfaces = "device = \"4GB/s\"\n"
                                                                          "internal = \"1GB/s\""}))
      .or_throw();
}

TEST(LowerCollective, NamesAMessageByItsStep) {
  const Plan one =
      lowered(flat(CollectiveKind::all_reduce, 4, Bytes{64}, CollectiveAlgorithm::ring));
  EXPECT_EQ(to_text(one, one.stepped.front().sends.front()),
            "rank 0 (dc0, stage 0): send of step 0 of all-reduce to rank 1");
  EXPECT_EQ(to_text(one, one.stepped.front().receives.back()),
            "rank 0 (dc0, stage 0): receive of step 5 of all-reduce from rank 3");
  const Plan pieces =
      lowered(flat(CollectiveKind::broadcast, 4, Bytes{64}, CollectiveAlgorithm::tree, 3));
  EXPECT_EQ(to_text(pieces, pieces.stepped.front().sends.back()),
            "rank 2 (dc0, stage 2): send of step 1 (piece 2) of broadcast to rank 3");
}

// A lane for each peer and stream; a message waits for its data and the one before it.
TEST(LowerCollective, IsSendsReceivesAndDependencies) {
  const Collective ring =
      flat(CollectiveKind::all_gather, 4, Bytes{64}, CollectiveAlgorithm::ring, 2);
  const CollectiveSteps steps = steps_of(ring);
  const Plan made = lowered(ring);
  ASSERT_EQ(made.stepped.front().sends.size(), 24U);
  int send_lanes = 0;
  for (const Lane& lane : made.lanes) {
    send_lanes += lane.kind == OpKind::send ? 1 : 0;
    EXPECT_NE(lane.kind, OpKind::collective);
  }
  EXPECT_EQ(send_lanes, 4 * 2);
  for (std::size_t m = 0; m < made.stepped.front().sends.size(); ++m) {
    const Op& send = made.op(made.stepped.front().sends[m]);
    EXPECT_TRUE(is_step(send));
    EXPECT_EQ(send.match, index(made.stepped.front().receives[m]));
    EXPECT_EQ(send.size, Bytes{8});
    const bool first = steps.messages[m].step == 0;
    EXPECT_EQ(made.after_of(made.stepped.front().sends[m]).size(), first ? 0U : 2U);
    EXPECT_TRUE(made.after_of(made.stepped.front().receives[m]).empty());
  }
}

TEST(LowerCollective, CountsBytesByLevel) {
  const Collective ring = flat(CollectiveKind::all_gather, 4, Bytes{64}, CollectiveAlgorithm::ring);
  const Scenario scenario = testing::scenario_of({.datacenters = 2, .gpus = 2});
  // Ring 0-1-2-3-0: two hops inside nodes, two across; three shards of 16 bytes each way.
  EXPECT_EQ(bytes_by_level(ring, steps_of(ring), scenario),
            (BytesByLevel{Bytes{96}, {}, Bytes{96}}));
}

}  // namespace
}  // namespace longhaul::plan

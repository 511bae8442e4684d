// Times of repeated plans are in tests/integration/sim.
#include "plan/rewrite/repeated.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/plan_draft.hpp"
#include "plan/rows.hpp"

namespace longhaul::plan {
namespace {

using ::testing::UnorderedElementsAre;

// Two ranks with a block each, a message from one to the other, and two collectives of both.
TEST(Repeated, KeepsEachIterationsMessagesAndCollectivesTogether) {
  PlanDraft draft{"small"};
  const Rank east = draft.add_rank("east"), west = draft.add_rank("west");
  const LaneId sends = draft.add_lane(east, "send>1", OpKind::send,
                                      {draft.add_resource("link", ResourceKind::link)});
  const LaneId receives = draft.add_lane(west, "recv<0", OpKind::recv);
  const std::vector<LaneId> lanes{draft.add_lane(east, "collective", OpKind::collective),
                                  draft.add_lane(west, "collective", OpKind::collective)};
  const auto message = draft.add_message(sends, receives, Duration{5}, Duration{2});
  const std::vector<std::vector<PlanDraft::Handle>> sums{
      draft.add_collective(CollectiveKind::all_reduce, lanes, Duration{3}),
      draft.add_collective(CollectiveKind::all_reduce, lanes, Duration{4})};
  const Plan once = draft.make();
  const Plan thrice = repeated(once, 3);
  ASSERT_EQ(thrice.collectives.size(), 6U);
  const RepeatedIds ids{once, 3};
  for (int k = 0; k < 3; ++k) {
    const auto id_of = [&](PlanDraft::Handle op) { return ids.of(draft.id(op), k); };
    EXPECT_EQ(OpId{thrice.op(id_of(message.send)).match}, id_of(message.recv));
    EXPECT_EQ(OpId{thrice.op(id_of(message.recv)).match}, id_of(message.send));
    for (const auto& [here, there] :
         {std::pair{sums[0][0], sums[0][1]}, std::pair{sums[1][0], sums[1][1]}}) {
      const std::uint32_t which = thrice.op(id_of(here)).match;
      EXPECT_EQ(thrice.op(id_of(there)).match, which);
      EXPECT_THAT(thrice.collectives.at(which), UnorderedElementsAre(id_of(here), id_of(there)));
    }
  }
}

// What was announced is of ops by their ids.
TEST(Repeated, RefusesAPlanWithNoise) {
  PlanDraft draft{"noisy"};
  const Rank rank = draft.add_rank("east");
  draft.add_block(draft.add_lane(rank, "compute", OpKind::compute), Duration{100});
  struct Run run;  // not ::testing::Test::Run
  run.noise = 0.1;
  const Plan once = draft.make();
  EXPECT_EQ(repeated(with_noise(once, {}, 0), 2).ops.size(), 2U);
  EXPECT_THROW((void)repeated(with_noise(once, run, 0), 2), Error);
}

}  // namespace
}  // namespace longhaul::plan

#include "prefill/play/played_training.hpp"

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/plan_draft.hpp"
#include "sim/simulate.hpp"

namespace longhaul::prefill {
namespace {

class NoPrefills : public IdleGpu {
public:
  Offer next(std::int32_t, Duration, const PlayedTraining&) override { return {}; }
  void block_begins(std::int32_t, Duration) override {}
  void ended(std::int32_t, Duration, Duration, bool) override {}
  [[nodiscard]] Duration stops_at(std::int32_t, Duration, Duration end, Duration) const override {
    return end;
  }
};

/// A block of 10 ms on each of two ranks, then an all-reduce of 5 ms.
Plan block_and_sum() {
  plan::PlanDraft draft{"sum"};
  std::vector<LaneId> lanes;
  std::vector<plan::PlanDraft::Handle> blocks;
  for (const int r : {0, 1}) {
    const Rank rank = draft.add_rank("east", r);
    const ResourceId device = draft.add_resource(fmt::format("device {}", r), ResourceKind::device);
    blocks.push_back(
        draft.add_block(draft.add_lane(rank, "compute", OpKind::compute, {device}), 10ms));
    lanes.push_back(draft.add_lane(rank, "collective", OpKind::collective));
  }
  const auto members = draft.add_collective(CollectiveKind::all_reduce, lanes, 5ms);
  for (std::size_t r = 0; r < members.size(); ++r) draft.after(members[r], blocks[r]);
  return draft.make();
}

// Nothing else happens as the all-reduce ends.
TEST(PlayedTraining, BeginsAnIterationAsTheLastCollectiveEnds) {
  const Plan plan = block_and_sum();
  const TrainingGraph graph{plan, sim::simulate(plan), 2};
  const PlayedTimes times{[](OpId, DeviceId, int) { return 1.0; },
                          [](std::int64_t, Duration estimate) { return estimate; }};
  NoPrefills none;
  PlayedTraining played{graph, times, none};
  played.run(3);
  EXPECT_EQ(played.wall(), 45ms);
  ASSERT_EQ(played.blocks()[1].size(), 3U);
  EXPECT_EQ(played.blocks()[1][2].start, 30ms);
  EXPECT_EQ(played.blocks()[1][2].end, 40ms);
}

}  // namespace
}  // namespace longhaul::prefill

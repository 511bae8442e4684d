// Blocks that take longer than planned hold up what has a place on their device after them.
#include <set>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/plan_draft.hpp"
#include "plan/rows.hpp"
#include "played_plan.hpp"
#include "sim/simulate.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul {
namespace {

/// A block that is ready at 10 ms on a device half as fast as planned, and optional ops before it,
/// each with a window that ends then.
struct SlowDevice {
  explicit SlowDevice(const std::vector<std::pair<Duration, Duration>>& optional) {
    plan::PlanDraft draft{"slow device"};
    const Rank west = draft.add_rank("west");
    const Rank east = draft.add_rank("east");
    const LaneId there = draft.add_lane(west, "compute", OpKind::compute,
                                        {draft.add_resource("device 0", ResourceKind::device)});
    const ResourceId device = draft.add_resource("device 1", ResourceKind::device);
    const LaneId here = draft.add_lane(east, "compute", OpKind::compute, {device});
    const LaneId extra = draft.add_lane(east, "extra", OpKind::compute, {device});
    const auto before = draft.add_block(there, 5ms);
    const auto block = draft.add_block(here, 5ms);
    draft.after(block, before, 0);
    std::vector<plan::PlanDraft::Handle> handles;
    for (const auto& [from, takes] : optional) {
      handles.push_back(draft.add_block(extra, takes));
      draft.window(handles.back(), from, 10ms);
    }
    const Plan plan = draft.make();
    testing::VirtualRun run;
    run.blocks.stragglers = {2};
    played = testing::play_stream(plan, {}, run).iterations.front();
    of_block = draft.id(block);
    for (const auto handle : handles) of_optional.push_back(draft.id(handle));
  }

  OpResults played;
  OpId of_block{};
  std::vector<OpId> of_optional;
};

/// How long blocks of training waited for a prompt.
Duration waited(const prefill::FilledPlan& filled, const OpResults& results) {
  std::set<OpId> prompts;
  for (const prefill::FilledStage& stage : filled.stages)
    for (std::size_t op = index(stage.first); op <= index(stage.op); ++op)
      prompts.insert(OpId{static_cast<std::uint32_t>(op)});
  Duration all{};
  for (const OpId id : filled.training) {
    const OpTime& time = results.times[index(id)];
    if (filled.plan.op(id).kind == OpKind::compute && prompts.contains(time.bound_by))
      all += time.end - time.ready;
  }
  return all;
}

TEST(Overruns, HoldUpTheBlockThatIsReadyAndAreWhatBindsIt) {
  const SlowDevice slow{{{0ms, 6ms}}};
  EXPECT_EQ(slow.played.outcomes[index(slow.of_optional[0])], Outcome::late);
  const OpTime& block = slow.played.times[index(slow.of_block)];
  EXPECT_EQ(block.start, Duration{12ms});
  EXPECT_EQ(block.bound_by, slow.of_optional[0]);
  EXPECT_EQ(block.bound_kind, BoundKind::resource);
}

/// It had a place from 4 ms on, in which it would have ended at 9.
TEST(Overruns, LeaveNoTimeToAnOptionalOpThatHadAPlaceAfterThem) {
  const SlowDevice slow{{{0ms, 4ms}, {4ms, 5ms}}};
  EXPECT_EQ(slow.played.outcomes[index(slow.of_optional[0])], Outcome::ran);
  EXPECT_EQ(slow.played.outcomes[index(slow.of_optional[1])], Outcome::skipped);
  const OpTime& block = slow.played.times[index(slow.of_block)];
  EXPECT_EQ(block.start, Duration{10ms});
  EXPECT_EQ(block.bound_kind, BoundKind::dependency);
}

TEST(Overruns, LetOptionalOpsBeginThatStillFit) {
  const SlowDevice slow{{{0ms, 4ms}, {4ms, 2ms}}};
  EXPECT_EQ(slow.played.outcomes[index(slow.of_optional[1])], Outcome::late);
  EXPECT_EQ(slow.played.times[index(slow.of_optional[1])].start, Duration{8ms});
  EXPECT_EQ(slow.played.times[index(slow.of_block)].start, Duration{12ms});
}

// Blocks and prompts take other times than announced: how long training waits for prompts on ranks
// is what the simulator says.
TEST(Overruns, DelayTrainingAsSimulated) {
  Duration foretold{}, delayed{};
  std::size_t same = 0, all = 0;
  for (std::uint64_t seed = 400; seed < 440; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    const auto filled = stretch.fill(stretch.place(testing::random_requests(random)));
    testing::VirtualRun by_noise;
    by_noise.blocks.noise = 0.1;
    by_noise.blocks.seed = seed;
    const OpResults simulated =
        sim::simulate_results(plan::with_noise(filled.plan, by_noise.blocks, 0));
    const OpResults played = testing::play_stream(filled.plan, {}, by_noise).iterations.front();
    foretold += waited(filled, simulated);
    delayed += waited(filled, played);
    for (std::size_t i = 0; i < filled.plan.ops.size(); ++i) {
      same += played.times[i].end == simulated.times[i].end ? 1 : 0;
      ++all;
    }
  }
  // What ranks decline by the planned end of what runs may fit by its real one.
  EXPECT_GT(same * 1000, all * 998);
  EXPECT_GT(foretold, 3ms);
  EXPECT_LT(abs(delayed - foretold), foretold / 20);
}

}  // namespace
}  // namespace longhaul

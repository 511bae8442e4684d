// Blocks that take longer than planned hold up what has a place on their device after them.
#include <set>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/rows.hpp"
#include "played_plan.hpp"
#include "sim/simulate.hpp"
#include "support/filled_stretches.hpp"
#include "support/optional_ops.hpp"

namespace longhaul {
namespace {

/// A block that is ready at twice `before` on a device half as fast as planned, and optional ops
/// before it, each with a window that ends at 10 ms: on ranks, and simulated.
struct SlowDevice {
  explicit SlowDevice(const std::vector<std::pair<Duration, Duration>>& optional,
                      Duration before = 5ms) {
    testing::TwoDevices two{plan::PlanDraft{"slow device"}};
    auto& [draft, west, east, there, device, here, extra] = two;
    const auto block = draft.add_block(here, 5ms);
    draft.after(block, draft.add_block(there, before), 0);
    std::vector<plan::PlanDraft::Handle> handles;
    for (const auto& [from, takes] : optional) {
      handles.push_back(draft.add_block(extra, takes));
      draft.window(handles.back(), from, 10ms);
    }
    const Plan plan = draft.make();
    testing::VirtualRun run;
    run.blocks.stragglers = {2};
    played = testing::play_stream(plan, {}, run).iterations.front();
    simulated = sim::simulate_results(plan::with_noise(plan, run.blocks, 0));
    of_block = draft.id(block);
    for (const auto handle : handles) of_optional.push_back(draft.id(handle));
  }
  /// Both say so.
  void expect(std::size_t optional, Outcome outcome) const {
    EXPECT_EQ(played.outcomes[index(of_optional[optional])], outcome);
    EXPECT_EQ(simulated.outcomes[index(of_optional[optional])], outcome);
  }
  void expect_block(Duration start, OpId bound_by, BoundKind kind) const {
    for (const OpResults* const each : {&played, &simulated}) {
      const OpTime& block = each->times[index(of_block)];
      EXPECT_EQ(block.start, start);
      EXPECT_EQ(block.bound_by, bound_by);
      EXPECT_EQ(block.bound_kind, kind);
    }
  }

  OpResults played, simulated;
  OpId of_block{};
  std::vector<OpId> of_optional;
};

/// How long blocks of training waited for a prompt.
Duration waited(const Plan& training, const prefill::FilledPlan& filled, const OpResults& results) {
  std::set<OpId> prompts;
  for (const prefill::FilledStage& stage : filled.stages)
    for (std::size_t op = index(stage.first); op <= index(stage.op); ++op)
      prompts.insert(OpId{static_cast<std::uint32_t>(op)});
  Duration all{};
  for (std::size_t i = 0; i < training.ops.size(); ++i) {
    const OpTime& time = results.times[index(filled.training[i])];
    if (training.ops[i].kind != OpKind::compute || !prompts.contains(time.bound_by)) continue;
    const Lane& lane = training.lane_of(OpId{static_cast<std::uint32_t>(i)});
    const bool is_first = index(lane.first) == i;
    all += time.start -
           std::max(time.ready,
                    is_first ? Duration{} : results.times[index(filled.training[i - 1])].end);
  }
  return all;
}

TEST(Overruns, HoldUpTheBlockThatIsReadyAndAreWhatBindsIt) {
  const SlowDevice slow{{{0ms, 6ms}}};
  slow.expect(0, Outcome::late);
  slow.expect_block(12ms, slow.of_optional[0], BoundKind::resource);
}

/// It had a place from 4 ms on, in which it would have ended at 9.
TEST(Overruns, LeaveNoTimeToAnOptionalOpThatHadAPlaceAfterThem) {
  const SlowDevice slow{{{0ms, 4ms}, {4ms, 5ms}}};
  slow.expect(0, Outcome::ran);
  slow.expect(1, Outcome::skipped);
  slow.expect_block(10ms, OpId{0}, BoundKind::dependency);
}

/// The block is ready at 6 ms and had a place after the optional op, from 9 on.
TEST(Overruns, LeaveThePlaceOfAnOptionalOpThatDoesNotBegin) {
  const SlowDevice slow{{{0ms, 4ms}, {4ms, 5ms}}, 3ms};
  slow.expect(1, Outcome::skipped);
  slow.expect_block(8ms, slow.of_optional[0], BoundKind::resource);
}

TEST(Overruns, LetOptionalOpsBeginThatStillFit) {
  const SlowDevice slow{{{0ms, 4ms}, {4ms, 2ms}}};
  slow.expect(1, Outcome::late);
  EXPECT_EQ(slow.played.times[index(slow.of_optional[1])].start, Duration{8ms});
  slow.expect_block(12ms, slow.of_optional[1], BoundKind::resource);
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
    foretold += waited(stretch.plan, filled, simulated);
    delayed += waited(stretch.plan, filled, played);
    for (std::size_t i = 0; i < filled.plan.ops.size(); ++i) {
      same += played.times[i].end == simulated.times[i].end ? 1 : 0;
      ++all;
    }
  }
  // What ranks decline by the planned end of what runs may fit by its real one.
  EXPECT_GT(same * 100, all * 99);
  EXPECT_GT(foretold, 400us);
  EXPECT_LT(abs(delayed - foretold), foretold / 20);
}

}  // namespace
}  // namespace longhaul

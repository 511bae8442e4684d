#include "prefill/lowering/row_idle.hpp"

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "sim/simulate.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul::prefill {
namespace {

/// GPipe of two stages and microbatches, 900 ms: GPU 0 is idle from 200 to 500 ms, GPU 1 from 0 to
/// 100 and from 700 on. A prompt of 100 ms comes at 250 ms and begins at once on GPU 0.
class IdleByHand : public ::testing::Test {
protected:
  [[nodiscard]] static Scenario two_stages() {
    Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
    scenario.costs.forward.assign(2, 100ms);
    scenario.costs.backward.assign(2, 200ms);
    scenario.served.front().guard = Duration{};
    return scenario;
  }
  void SetUp() override {
    ASSERT_EQ(stretch_.bubbles.period, 900ms);
    ASSERT_EQ(decisions_[0].start, 250ms);
    results_.outcomes.assign(filled_.plan.ops.size(), Outcome::ran);
  }
  [[nodiscard]] Duration idle(IdleCause cause, const StretchDemand& demand = {}) const {
    return idle_of_rows({stretch_.plan, filled_, stretch_.served, decisions_, results_, 2},
                        demand)[static_cast<std::size_t>(cause)];
  }
  [[nodiscard]] OpTime& prompt() { return results_.times[index(filled_.stages[0].op)]; }

  const testing::PlacedStretch stretch_{two_stages(), "gpipe", 1};
  const std::vector<Decision> decisions_ = stretch_.place({{0, 250ms, 100}});
  const FilledPlan filled_ = stretch_.fill(decisions_);
  OpResults results_ = sim::simulate_results(filled_.plan);
};

TEST_F(IdleByHand, IsToldByLengthAndRequests) {
  EXPECT_EQ(idle(IdleCause::too_small), 50ms) << "before the prompt";
  EXPECT_EQ(idle(IdleCause::no_request), 150ms + 100ms + 200ms);
  EXPECT_EQ(idle(IdleCause::signal), 0ms);
  EXPECT_EQ(idle(IdleCause::declined), 0ms);
}

TEST_F(IdleByHand, IsOfTheSignalUntilAPromptBegins) {
  prompt().start += 10ms;
  prompt().end += 10ms;
  EXPECT_EQ(idle(IdleCause::signal), 10ms);
  EXPECT_EQ(idle(IdleCause::too_small), 50ms);
  EXPECT_EQ(idle(IdleCause::no_request), 140ms + 100ms + 200ms);
}

// A block that is late opens its bubble late: no signal is.
TEST_F(IdleByHand, IsNotOfTheSignalWhileTheBubbleIsNotOpen) {
  for (std::size_t i = 0; i < filled_.training.size(); ++i)
    if (OpTime& time = results_.times[index(filled_.training[i])];
        stretch_.plan.ops[i].kind == OpKind::compute && time.end == 200ms &&
        index(stretch_.plan.rank_of(OpId{static_cast<std::uint32_t>(i)})) == 0)
      time.end = 255ms;
  prompt().start += 10ms;
  prompt().end += 10ms;
  EXPECT_EQ(idle(IdleCause::signal), 5ms);
  EXPECT_EQ(idle(IdleCause::too_small), 0ms);
}

TEST_F(IdleByHand, IsDeclinedWhereAPromptDidNotRun) {
  results_.outcomes[index(filled_.stages[0].op)] = Outcome::skipped;
  prompt() = {};
  EXPECT_EQ(idle(IdleCause::declined), 100ms);
  EXPECT_EQ(idle(IdleCause::no_request), 200ms + 100ms + 200ms);
}

TEST_F(IdleByHand, IsDeclinedWhereALivePromptRanInALaterBubble) {
  prompt().start = 900ms;
  prompt().end = 1'000ms;  // training ends with 900 ms
  EXPECT_EQ(idle(IdleCause::declined), 0ms);
  EXPECT_EQ(idle(IdleCause::declined, {.is_live = true}), 100ms);
}

TEST_F(IdleByHand, IsTooSmallWhileSomeoneElseWaits) {
  const StretchDemand demand{.waiting = {{.request = 1, .arrival = 300ms, .tokens = 100}}};
  EXPECT_EQ(idle(IdleCause::too_small, demand), 50ms + 150ms + 200ms);
  EXPECT_EQ(idle(IdleCause::no_request, demand), 100ms);
  const StretchDemand backlog{.backlog = true};
  EXPECT_EQ(idle(IdleCause::too_small, backlog), 50ms + 150ms + 100ms + 200ms);
  EXPECT_EQ(idle(IdleCause::no_request, backlog), 0ms);
}

TEST_F(IdleByHand, IsWithoutARequestWhereNoneComes) {
  const FilledPlan none = stretch_.fill({});
  const IdleTimes times = idle_of_rows(
      {stretch_.plan, none, stretch_.served, {}, sim::simulate_results(none.plan), 2}, {});
  EXPECT_EQ(times[static_cast<std::size_t>(IdleCause::no_request)], 300ms + 100ms + 200ms);
}

}  // namespace
}  // namespace longhaul::prefill

#include "prefill/lowering/held_memory.hpp"

#include <gtest/gtest.h>

#include "prefill/prompt/memory_over_time.hpp"
#include "schedule/memory.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul::prefill {
namespace {

/// GPipe of two stages and microbatches: GPU 0 is idle from 200 to 500 ms. Two prompts are placed
/// there, from 200 to 450 ms and from 450 to 480 ms; there is memory for the first of them, but not
/// for both.
class TwoPrompts : public ::testing::Test {
protected:
  [[nodiscard]] static Scenario two_stages() {
    Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
    scenario.costs.forward.assign(2, 100ms);
    scenario.costs.backward.assign(2, 200ms);
    scenario.memory.capacity.assign(2, 1_GiB);
    scenario.served.front().guard = 1ms;
    scenario.served.front().dimensions = ServedDimensions{.layers = 2,
                                                          .hidden = 64,
                                                          .intermediate = 128,
                                                          .heads = 4,
                                                          .kv_heads = 4,
                                                          .head_size = 16,
                                                          .vocabulary = 100};
    return scenario;
  }
  void SetUp() override {
    ASSERT_EQ(decisions_[0].start, 200ms);
    ASSERT_EQ(decisions_[1].start, 450ms);
    const auto& model = stretch_.served[0].model;
    const Schedule schedule = schedule::generate("gpipe", stretch_.scenario);
    Scenario tight = stretch_.scenario;
    tight.memory.capacity.assign(2, schedule::device_memory(schedule, tight)[0].total() +
                                        model.dimensions->weights() + held_memory(model, 250, 0));
    const TrainingGraph graph{stretch_.plan, stretch_.times, 2};
    filled_ =
        stretch_.fill(decisions_, {.memory = std::make_shared<const MemoryBesideBlocks>(
                                       schedule, tight, stretch_.plan, graph, stretch_.served)});
    source_ = filled_.plan.extras.deadlines.make();
  }
  /// May a prompt begin then, beside training as planned? It must be over by 500 ms.
  [[nodiscard]] bool may_begin(std::size_t prompt, Duration now,
                               std::vector<plan::OpEnd> ended = {}) {
    for (std::size_t i = 0; i < stretch_.times.size(); ++i)
      if (const Duration end = stretch_.times[i].end; end > heard_ && end <= now)
        ended.push_back({.op = filled_.training[i], .end = end});
    heard_ = now;
    const OpId op = filled_.stages[prompt].op;
    const plan::PastEvents past{now, 0, ended};
    return now + filled_.plan.op(op).duration <= source_->deadline(op, 500ms, now, past);
  }

  const testing::PlacedStretch stretch_{two_stages(), "gpipe", 1};
  const std::vector<Decision> decisions_ = stretch_.place({{0, 200ms, 250}, {1, 200ms, 30}});
  FilledPlan filled_;
  std::unique_ptr<plan::DeadlineSource> source_;
  Duration heard_{};
};

TEST_F(TwoPrompts, HoldMemoryFromTheirBeginUntilTheyAreOver) {
  EXPECT_TRUE(may_begin(0, 200ms));
  EXPECT_FALSE(may_begin(1, 450ms)) << "no one has heard of the first one's end";
  EXPECT_TRUE(may_begin(1, 450ms, {{.op = filled_.stages[0].op, .end = 450ms}}));
}

TEST_F(TwoPrompts, HoldNothingWhereTheyAreTooLateToBegin) {
  EXPECT_FALSE(may_begin(0, 260ms)) << "it would end after 500 ms";
  EXPECT_TRUE(may_begin(1, 450ms));
}

TEST_F(TwoPrompts, HoldNothingWhereTheLastAnswerWasNo) {
  EXPECT_TRUE(may_begin(0, 240ms));
  EXPECT_FALSE(may_begin(0, 251ms)) << "it had not begun";
  EXPECT_TRUE(may_begin(1, 450ms));
}

}  // namespace
}  // namespace longhaul::prefill

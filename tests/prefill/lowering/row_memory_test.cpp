#include "prefill/lowering/row_memory.hpp"

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "schedule/memory.hpp"
#include "sim/simulate.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul::prefill {
namespace {

/// GPipe of two stages and microbatches: device 0 is idle from 200 to 500 ms, and holds both
/// microbatches' activations then.
class HeldByHand : public ::testing::Test {
protected:
  [[nodiscard]] static Scenario two_stages() {
    Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
    scenario.costs.forward.assign(2, 100ms);
    scenario.costs.backward.assign(2, 200ms);
    scenario.memory.capacity.assign(2, 1_GiB);
    scenario.served.front().dimensions = ServedDimensions{.layers = 2,
                                                          .hidden = 64,
                                                          .intermediate = 128,
                                                          .heads = 4,
                                                          .kv_heads = 4,
                                                          .head_size = 16,
                                                          .vocabulary = 100};
    return scenario;
  }
  [[nodiscard]] std::vector<GpuMemory> held(const FilledPlan& filled,
                                            const OpResults& results) const {
    return memory_of_rows(memory_, *graph_, stretch_.served, filled, decisions_, results);
  }
  [[nodiscard]] FilledPlan fill(std::shared_ptr<const MemoryBesideBlocks> memory) const {
    return stretch_.fill(decisions_, {.memory = std::move(memory)});
  }
  [[nodiscard]] Bytes model_bytes() const { return stretch_.served[0].model.dimensions->weights(); }
  [[nodiscard]] Bytes prompt() const { return held_memory(stretch_.served[0].model, 100, 0); }

  const testing::PlacedStretch stretch_{two_stages(), "gpipe", 1};
  const Schedule schedule_ = schedule::generate("gpipe", stretch_.scenario);
  const std::shared_ptr<const TrainingGraph> graph_ =
      std::make_shared<const TrainingGraph>(stretch_.plan, stretch_.times, 2);
  const MemoryBesideBlocks memory_{schedule_, stretch_.scenario, stretch_.plan, *graph_,
                                   stretch_.served};
  const Bytes training_ = schedule::device_memory(schedule_, stretch_.scenario)[0].total();
  std::vector<Decision> decisions_ = stretch_.place({{0, 250ms, 100}});
};

TEST_F(HeldByHand, IsTrainingTheServedModelAndThePrompt) {
  ASSERT_EQ(decisions_[0].start, 250ms);
  const FilledPlan filled = fill(nullptr);
  OpResults results = sim::simulate_results(filled.plan);
  const Bytes alone = training_ + model_bytes();
  const std::vector<GpuMemory> both = held(filled, results);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0], (GpuMemory{0, 1_GiB, alone + prompt()}));
  EXPECT_EQ(both[1].peak, alone);
  // Before the first block it holds less than training's activations will.
  OpTime& time = results.times[index(filled.stages[0].op)];
  time.start = -100ms;
  time.end = Duration{};
  EXPECT_EQ(held(filled, results)[0].peak, alone);
  results.outcomes.assign(filled.plan.ops.size(), Outcome::ran);
  results.outcomes[index(filled.stages[0].op)] = Outcome::skipped;
  time.start = 250ms;
  time.end = 350ms;
  EXPECT_EQ(held(filled, results)[0].peak, alone) << "it was declined";
}

// The GPU has the last word on a prompt that was placed without account of memory.
TEST_F(HeldByHand, IsNeverMoreThanTheCapacity) {
  Scenario tight = stretch_.scenario;
  const auto begun = [&](Bytes capacity) {
    tight.memory.capacity.assign(2, capacity);
    const auto memory = std::make_shared<const MemoryBesideBlocks>(schedule_, tight, stretch_.plan,
                                                                   *graph_, stretch_.served);
    const OpResults results = sim::simulate_results(fill(memory).plan);
    return results.outcomes.empty() ||
           std::ranges::none_of(results.outcomes, [](Outcome each) { return !has_run(each); });
  };
  const Bytes enough = training_ + model_bytes() + prompt();
  EXPECT_TRUE(begun(enough));
  EXPECT_FALSE(begun(enough - Bytes{1}));
}

}  // namespace
}  // namespace longhaul::prefill

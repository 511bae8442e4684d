#include "scenario/model_costs.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "scenario/presets.hpp"

namespace longhaul::scenario {
namespace {

const ModelPreset& preset(const std::string& name) {
  for (const ModelPreset& preset : model_presets()) {
    if (preset.model.name == name) return preset;
  }
  throw std::out_of_range{name};
}

double milliseconds(Duration time) { return static_cast<double>(time.count()) / 1e6; }

TEST(ModelCosts, Llama3405bForwardOfAStageIsThatOfCrossPipe) {
  const Costs costs = model_costs(preset("llama3-405b").model, 16);
  EXPECT_NEAR(milliseconds(costs.forward[0]), 109.0, 0.5);  // CrossPipe 5.2
  // By hand: 8 layers, each 2*8192*3187671040 + 2*8192^2*16384 FLOPs, on 8 GPUs of 5e14 FLOP/s.
  const double flops = 8 * (2.0 * 8192 * 3187671040.0 + 2.0 * 8192 * 8192 * 16384);
  EXPECT_NEAR(milliseconds(costs.forward[7]), flops / 4e15 * 1e3, 1e-6);
}

TEST(ModelCosts, BackwardIsTwiceForwardAndSplitsAroundIt) {
  const Costs costs = model_costs(preset("llama3-405b").model, 16);
  EXPECT_NEAR(milliseconds(costs.backward[0]), 2 * milliseconds(costs.forward[0]), 1e-5);
  EXPECT_GT(costs.dgrad[0], costs.forward[0]);
  EXPECT_LT(costs.wgrad[0], costs.forward[0]);
  EXPECT_NEAR(milliseconds(costs.dgrad[0]) / milliseconds(costs.forward[0]), 1.0, 0.05);
  EXPECT_EQ(costs.recompute, costs.forward);
  EXPECT_NEAR(training_flops(preset("llama3-405b").model),
              3 * 16 * 4e15 * 1e-3 * milliseconds(costs.forward[0]), 1e12);
}

TEST(ModelCosts, MessagesAreThoseOfCrossPipe) {
  EXPECT_EQ(model_costs(preset("m8").model, 4).message, std::vector<Bytes>(4, 32_MiB));
  EXPECT_EQ(model_costs(preset("m70").model, 8).message, std::vector<Bytes>(8, 64_MiB));
}

TEST(ModelCosts, ParametersAreThoseOfThePapers) {
  const auto billions = [](const Model& model) {
    return static_cast<double>(model_parameters(model)) / 1e9;
  };
  EXPECT_NEAR(billions(preset("llama3-405b").model), 405.85, 0.01);
  EXPECT_NEAR(billions(preset("llama3-70b").model), 70.55, 0.01);
  EXPECT_NEAR(billions(preset("llama3-8b").model), 8.03, 0.01);
  EXPECT_NEAR(static_cast<double>(layer_parameters(preset("gpt-a").model)) / 1e6, 412.0, 0.05);
  EXPECT_NEAR(static_cast<double>(layer_parameters(preset("gpt-b").model)) / 1e9, 1.2, 0.0005);
  // MPT: 12 d^2, norms and no biases; 7B has 6.65e9 with its embedding once.
  const Model& mpt = preset("mpt-7b").model;
  EXPECT_NEAR(static_cast<double>(layer_parameters(mpt)) / (12.0 * 4096 * 4096), 1, 1e-3);
  EXPECT_NEAR(billions(mpt) - 50368 * 4096 / 1e9, 6.65, 0.01);
  EXPECT_EQ(mpt.attention, AttentionKind::flash);
  EXPECT_EQ(mpt.positions, PositionKind::alibi);
}

TEST(ModelCosts, WeightsOfTheStagesAreThoseOfTheModel) {
  for (const ModelPreset& preset : model_presets()) {
    for (const int stages : {1, 2, 3, 4}) {
      const Costs costs = model_costs(preset.model, stages);
      const Bytes sum = std::accumulate(costs.weights.begin(), costs.weights.end(), Bytes{});
      EXPECT_EQ(sum, Bytes{2 * model_parameters(preset.model)}) << preset.model.name;
    }
  }
}

TEST(ModelCosts, ActivationIsWhatFlashAttentionKeeps) {
  // M8, one layer: 6*4096 + 2*1024 + 3*14336 numbers of 2 bytes for each of 4096 tokens.
  EXPECT_EQ(model_costs(preset("m8").model, 32).activation[5], Bytes{2LL * 4096 * 69632});
}

// GPT-3, 98 layers: 2 s^2 d FLOPs of attention at 156 TFLOP/s are 660.764 us, and 5 h s^2 bytes of
// scores stay without recomputation (arXiv 2205.05198, 4.1); 32 s d are left.
TEST(ModelCosts, SelectiveRecomputationLengthensTheBackwardByTheScoresThatItDoesNotKeep) {
  Model model = preset("175b").model;
  const Costs kept = model_costs(model, 98);
  model.selective_recompute = true;
  const Costs again = model_costs(model, 98);
  EXPECT_EQ(again.dgrad[5] - kept.dgrad[5], 660'764ns);
  EXPECT_EQ(again.backward[5] - kept.backward[5], 660'764ns);
  EXPECT_EQ(again.forward, kept.forward);
  EXPECT_EQ(again.wgrad, kept.wgrad);
  EXPECT_EQ(again.recompute, kept.recompute);
  EXPECT_EQ(kept.activation[5] - again.activation[5], Bytes{5LL * 96 * 2048 * 2048});
  EXPECT_EQ(again.activation[5], Bytes{32LL * 2048 * 12288});
  model.attention = AttentionKind::flash;  // keeps none
  Model flash = model;
  flash.selective_recompute = false;
  EXPECT_EQ(model_costs(model, 98).dgrad, model_costs(flash, 98).dgrad);
  EXPECT_EQ(model_costs(model, 98).activation, again.activation);
}

TEST(ModelCosts, M70MeasuredIsThatOfCrossPipe) {
  const ModelPreset& m70 = preset("m70-measured");
  const Costs costs = model_costs(m70.model, 8, m70.measured);
  EXPECT_EQ(costs.forward, std::vector<Duration>(8, 38ms));
  EXPECT_EQ(costs.backward, std::vector<Duration>(8, 67ms));
  EXPECT_EQ(costs.dgrad, std::vector<Duration>(8, 35ms));
  EXPECT_EQ(costs.wgrad, std::vector<Duration>(8, 35ms));
  EXPECT_EQ(costs.recompute, std::vector<Duration>(8, 38ms));
  EXPECT_EQ(model_costs(m70.model, 16, m70.measured).forward[3], 19ms);
}

TEST(ModelCosts, SpreadsLayersThatDoNotDivide) {
  Model model = preset("m8").model;
  EXPECT_EQ(layers_of_stages(model, 5), (std::vector<int>{7, 7, 6, 6, 6}));
  EXPECT_THROW((void)layers_of_stages(model, 33), Error);
}

TEST(LinkPresets, AreTheClassesOfCrossPipeAndTheLinksOfAtlas) {
  const auto& presets = link_presets();
  ASSERT_EQ(presets.size(), 8U);
  EXPECT_EQ(presets[0].latency, 10us);
  EXPECT_EQ(presets[0].bandwidth, 800_Gbps);
  EXPECT_EQ(presets[3].latency, 100ms);
  EXPECT_EQ(presets[7].name, "atlas-40ms");
  EXPECT_EQ(presets[7].latency, 40ms);
  EXPECT_EQ(presets[7].bandwidth, 293_Mbps);
}

}  // namespace
}  // namespace longhaul::scenario

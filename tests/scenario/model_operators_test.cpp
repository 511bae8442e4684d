#include "scenario/model_operators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/model_costs.hpp"
#include "scenario/presets.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::ElementsAre;

/// 4 layers, d = 4, MLP 6, 2 heads of which 1 has keys, 10 words; 3 tokens. 2 FLOP/ns, 8 B/ns.
Model tiny() {
  Model model;
  model.layers = 4;
  model.hidden = 4;
  model.intermediate = 6;
  model.heads = 2;
  model.kv_heads = 1;
  model.vocabulary = 10;
  model.sequence_length = 3;
  model.achieved_flops = 2e9;
  model.memory_bandwidth = Bandwidth{64e9};
  return model;
}

std::vector<std::string> names_of(const std::vector<Operator>& operators, int layer) {
  std::vector<std::string> names;
  for (const Operator& each : operators)
    if (each.layer == layer) names.push_back(each.name);
  return names;
}

const Operator& named(const std::vector<Operator>& operators, const std::string& name) {
  for (const Operator& each : operators)
    if (each.name == name) return each;
  throw std::out_of_range{name};
}

TEST(ModelOperators, StandInTheOrderOfAForward) {
  const auto all = model_operators(tiny());
  EXPECT_THAT(names_of(all, 0), ElementsAre("embedding"));
  for (const int layer : {1, 2})
    EXPECT_THAT(names_of(all, layer), ElementsAre("attention_norm", "qkv", "attention", "output",
                                                  "feedforward_norm", "gate_up", "swiglu", "down"));
  EXPECT_THAT(names_of(all, 3), ElementsAre("head_norm", "head", "loss"));
}

// 16 bytes a weight are 58 GB for the 18 layers of Small: Centauri figure 9's DDP on 80 GB.
TEST(ModelOperators, OfDecodersAloneAreThoseOfLayers) {
  for (const ModelPreset& preset : model_presets()) {
    if (!preset.model.decoders_alone) continue;
    const auto all = model_operators(preset.model);
    EXPECT_EQ(std::ssize(all), 8 * preset.model.layers);
    EXPECT_EQ(all.front().name, "attention_norm");
    EXPECT_EQ(all.back().name, "down");
    const double bytes = 16 * static_cast<double>(model_parameters(preset.model));
    if (preset.model.name == "llama-small") {
      EXPECT_NEAR(bytes, 58e9, 5e8);
    }
  }
}

TEST(ModelOperators, SelectiveRecomputationIsOfAttentionAlone) {
  Model model = tiny();
  model.attention = AttentionKind::plain;
  const auto kept = model_operators(model);
  model.selective_recompute = true;
  const auto again = model_operators(model);
  ASSERT_EQ(again.size(), kept.size());
  EXPECT_EQ(named(again, "attention").forward, Duration{36});
  EXPECT_EQ(named(again, "attention").dgrad, Duration{72 + 36});
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(again[i].forward, kept[i].forward) << kept[i].name;
    EXPECT_EQ(again[i].recompute, kept[i].recompute) << kept[i].name;
    if (kept[i].kind == OperatorKind::attention) continue;
    EXPECT_EQ(again[i].dgrad, kept[i].dgrad) << kept[i].name;
  }
  model.attention = AttentionKind::flash;
  EXPECT_EQ(named(model_operators(model), "attention").dgrad, Duration{72});
}

TEST(ModelOperators, TakeTheLongerOfComputationAndMemory) {
  const auto all = model_operators(tiny());
  // 2 * 3 * 4 * 8 FLOPs at 2 FLOP/ns; 2 (3 * 4 + 3 * 8 + 4 * 8) bytes take 17 ns.
  EXPECT_EQ(named(all, "qkv").forward, Duration{96});
  EXPECT_EQ(named(all, "qkv").dgrad, Duration{96});
  EXPECT_EQ(named(all, "qkv").wgrad, Duration{96});
  EXPECT_EQ(named(all, "qkv").weights, Bytes{64});
  // 2 * 3 * 3 * 4 FLOPs, and twice that in dgrad.
  EXPECT_EQ(named(all, "attention").forward, Duration{36});
  EXPECT_EQ(named(all, "attention").dgrad, Duration{72});
  EXPECT_EQ(named(all, "attention").wgrad, Duration{0});
  // Rows are read and written: 2 * 2 * 3 * 4 bytes at 8 B/ns; x, dy and dx in dgrad.
  EXPECT_EQ(named(all, "attention_norm").forward, Duration{6});
  EXPECT_EQ(named(all, "attention_norm").dgrad, Duration{9});
  EXPECT_EQ(named(all, "embedding").forward, Duration{6});
  EXPECT_EQ(named(all, "embedding").dgrad, Duration{0});
  EXPECT_EQ(named(all, "swiglu").forward, Duration{14});  // 108 bytes
  EXPECT_EQ(named(all, "head").forward, Duration{120});
}

TEST(ModelOperators, ProductsOfALayerAreTheLinearFlops) {
  for (const ModelPreset& preset : model_presets()) {
    Model model = preset.model;
    model.memory_bandwidth = Bandwidth::unlimited();
    Duration products{};
    for (const Operator& each : model_operators(model))
      if (each.layer == 1 && each.kind == OperatorKind::matmul) products += each.forward;
    const double seconds = linear_flops(model) / model.achieved_flops / model.tensor_parallel;
    EXPECT_NEAR(static_cast<double>(products.count()), seconds * 1e9, 4) << model.name;
  }
}

TEST(ModelOperators, WithoutAVocabularyEndsTakeWhatALayerTakes) {
  Model model = tiny();
  model.vocabulary = 0;
  const auto all = model_operators(model);
  ASSERT_EQ(all.size(), 18U);
  Duration layer{};
  for (const Operator& each : all)
    if (each.layer == 1) layer += each.dgrad;
  EXPECT_EQ(all.front().dgrad, layer);
  EXPECT_EQ(all.back().name, "head");
  EXPECT_EQ(all.back().dgrad, layer);
}

TEST(OperatorCosts, AddUpTheOperatorsOfEachStage) {
  const std::vector<Operator> all{{"a", OperatorKind::matmul, 0, 8_B, 1ns, 2ns, 3ns, 4ns},
                                  {"b", OperatorKind::matmul, 0, 4_B, 10ns, 20ns, 30ns, 40ns},
                                  {"c", OperatorKind::matmul, 1, 2_B, 5ns, 6ns, 7ns, 8ns}};
  const Costs costs = operator_costs(all, {2, 1});
  EXPECT_THAT(costs.forward, ElementsAre(11ns, 5ns));
  EXPECT_THAT(costs.dgrad, ElementsAre(22ns, 6ns));
  EXPECT_THAT(costs.wgrad, ElementsAre(33ns, 7ns));
  EXPECT_THAT(costs.backward, ElementsAre(55ns, 13ns));
  EXPECT_THAT(costs.recompute, ElementsAre(44ns, 8ns));
  EXPECT_THAT(costs.weights, ElementsAre(12_B, 2_B));
  EXPECT_THAT(operators_of_layers(all, {1, 1}), ElementsAre(2, 1));
}

TEST(Evenly, GivesTheFirstOneMore) {
  EXPECT_THAT(evenly(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(evenly(2, 3), ElementsAre(1, 1, 0));
}

}  // namespace
}  // namespace longhaul::scenario

#include "scenario/presets.hpp"

namespace longhaul::scenario {
namespace {

constexpr double kPeakHopper = 989e12;  // dense bf16 of H100 and GH200, NVIDIA's data sheets
constexpr double kPeakA100 = 312e12;
constexpr Bandwidth kMemoryA100{8 * 2.039e12};  // of 80 GB, SXM
constexpr double kAchievedHopper = 500e12;      // CrossPipe appendix E
constexpr double kAchievedA100 = 150e12;        // an assumption: Atlas gives no rate

Model hopper(std::string name, int layers, int hidden, int intermediate, int heads, int kv_heads,
             int sequence_length, int tensor_parallel) {
  return {std::move(name), layers, hidden,          intermediate,    heads,      kv_heads, 0,
          sequence_length, 1,      tensor_parallel, kAchievedHopper, kPeakHopper};
}

Model llama3(std::string name, int layers, int hidden, int intermediate, int heads,
             int tensor_parallel) {
  // layers + embedding + head, which Llama 3 balances as layers (CrossPipe 6.1)
  Model model =
      hopper(std::move(name), layers + 2, hidden, intermediate, heads, 8, 8192, tensor_parallel);
  model.vocabulary = 128256;
  return model;
}

Model atlas(std::string name, int hidden, int intermediate, int sequence_length) {
  const int heads = hidden / 128;
  return {std::move(name), 4, hidden, intermediate,  heads,     heads,      0,
          sequence_length, 1, 1,      kAchievedA100, kPeakA100, kMemoryA100};
}

/// Centauri table 4, whose sizes are decoder layers alone; `intermediate` is LLaMA's of that width
/// (of Large as LLaMA's rule gives it). The rate of its A100 is an assumption of 70% of the peak.
Model centauri(std::string name, int layers, int hidden, int intermediate, int heads) {
  constexpr double kAchieved = 220e12;
  return {std::move(name), layers,    hidden,      intermediate, heads, heads, 0, 2048, 1, 1,
          kAchieved,       kPeakA100, kMemoryA100, true};
}

/// GPT of the table of Megatron-LM (Narayanan et al., SC 2021, table 1) and of vTrain (tables I and
/// II): `layers` decoder layers, embedding and head; vocabulary as in vTrain's configurations. The
/// rate is an assumption of 50% of the A100's peak, which table 1 reaches.
Model gpt(std::string name, int layers, int hidden, int heads) {
  constexpr double kAchieved = 156e12;
  Model model{std::move(name), layers + 2, hidden,     4 * hidden, heads, heads, 50257, 2048, 1, 1,
              kAchieved,       kPeakA100,  kMemoryA100};
  model.mlp = MlpKind::gelu;
  model.positions = PositionKind::learned;
  model.attention = AttentionKind::plain;
  return model;
}

/// MPT of mosaicml/llm-foundry (scripts/train/yamls/pretrain): no biases, ALiBi, fused attention;
/// as gpt(), `layers` decoder layers, embedding and head, and half of an A100's peak as its rate.
Model mpt(std::string name, int layers, int hidden, int heads) {
  Model model = gpt(std::move(name), layers, hidden, heads);
  model.vocabulary = 50368;
  model.positions = PositionKind::alibi;
  model.attention = AttentionKind::flash;
  return model;
}

/// CrossPipe's M70 on 4 GH200 a stage of 8 layers: F = 38 ms is printed (7.1). B and R follow from
/// table 5 at delay (0,0), where 1F1B takes (M + P - 1) / M times a microbatch's blocks: 0.151 s
/// at M = 16 gives F + B = 105 ms, so B = 67; with recomputation 0.174 s at M = 32 gives
/// F + R + B = 143 ms, so R = 38. D = W = 35 ms is an estimate: half of B and 1.5 ms for the split,
/// below the bound of F + D + W that ZBV's 0.118 s sets. Here one layer's eighth of each.
LayerTimes m70_layer() {
  return {38'000'000ns / 8, 67'000'000ns / 8, 35'000'000ns / 8, 35'000'000ns / 8, 38'000'000ns / 8};
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = [] {
    // CrossPipe table 4 (7.1 for tensor parallelism and sequence length)
    const Model m8 = hopper("m8", 32, 4096, 14336, 32, 8, 4096, 2);
    const Model m70 = hopper("m70", 64, 8192, 28672, 64, 8, 4096, 4);
    Model measured = m70;
    measured.name = "m70-measured";
    return std::vector<ModelPreset>{
        {m8, std::nullopt},
        {m70, std::nullopt},
        {measured, m70_layer()},
        {llama3("llama3-8b", 32, 4096, 14336, 32, 1), std::nullopt},
        {llama3("llama3-70b", 80, 8192, 28672, 64, 4), std::nullopt},
        {llama3("llama3-405b", 126, 16384, 53248, 128, 8), std::nullopt},
        // Atlas section 3 gives hidden size, context and the weights of a layer; `intermediate` is
        // chosen to make them 412 million and 1.2 thousand million in our layer.
        {atlas("gpt-a", 4096, 28067, 4096), std::nullopt},
        {atlas("gpt-b", 8192, 37906, 6144), std::nullopt},
        {centauri("llama-small", 18, 4096, 11008, 32), std::nullopt},
        {centauri("llama-medium", 15, 5120, 13824, 40), std::nullopt},
        {centauri("llama-big", 10, 6656, 17920, 52), std::nullopt},
        {centauri("llama-large", 8, 8192, 22016, 64), std::nullopt},
        {gpt("gpt-3.6b", 30, 3072, 32), std::nullopt},
        {gpt("18.4b", 40, 6144, 48), std::nullopt},
        {gpt("39.1b", 48, 8192, 64), std::nullopt},
        {gpt("76b", 60, 10240, 80), std::nullopt},
        {gpt("81.2b", 64, 10240, 80), std::nullopt},
        {gpt("145.6b", 80, 12288, 96), std::nullopt},
        {gpt("175b", 96, 12288, 96), std::nullopt},
        {gpt("mt-nlg-530b", 105, 20480, 128), std::nullopt},
        {gpt("gpt-1t", 128, 25600, 160), std::nullopt},
        {mpt("mpt-125m", 12, 768, 12), std::nullopt},
        {mpt("mpt-350m", 24, 1024, 16), std::nullopt},
        {mpt("mpt-760m", 24, 1536, 12), std::nullopt},
        {mpt("mpt-1b", 24, 2048, 16), std::nullopt},
        {mpt("mpt-3b", 32, 2560, 20), std::nullopt},
        {mpt("mpt-7b", 32, 4096, 32), std::nullopt},
        {mpt("mpt-13b", 40, 5120, 40), std::nullopt},
        {mpt("mpt-30b", 48, 7168, 56), std::nullopt},
        {mpt("mpt-70b", 80, 8192, 64), std::nullopt},
    };
  }();
  return presets;
}

const std::vector<NodePreset>& node_presets() {
  // Centauri section 5: 8 A100 a node with one or four InfiniBand ports of 200 Gb/s. Of
  // NVSwitch's 600 GB/s, both ways together, a port moves 230 GB/s one way: an assumption.
  static const std::vector<NodePreset> presets{
      {"centauri-a", 8, Bandwidth{8 * 230e9}, 200_Gbps},
      {"centauri-b", 8, Bandwidth{8 * 230e9}, 800_Gbps},
  };
  return presets;
}

const std::vector<LinkPreset>& link_presets() {
  // CrossPipe 2.3; of a range, the slow end. Atlas table 1: one TCP connection.
  static const std::vector<LinkPreset> presets{
      {"same-campus", 10us, 800_Gbps},         {"cross-campus", 200us, 200_Gbps},
      {"same-region", 1ms, Bandwidth{11.3e9}}, {"cross-region", 100ms, Bandwidth{1.4e9}},
      {"atlas-10ms", 10ms, 1220_Mbps},         {"atlas-20ms", 20ms, 600_Mbps},
      {"atlas-30ms", 30ms, 396_Mbps},          {"atlas-40ms", 40ms, 293_Mbps},
  };
  return presets;
}

}  // namespace longhaul::scenario

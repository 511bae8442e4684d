#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace longhaul {

/// Dimensions of a decoder-only transformer that answers prompts. Weights and keys and values are
/// fp16. `layers` are decoder layers alone.
struct ServedDimensions {
  int layers = 0;
  int hidden = 0;
  int intermediate = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_size = 0;
  int vocabulary = 0;
  bool tied = false;  ///< embedding and output head are one matrix

  /// Numbers in the matrices of one decoder layer: attention's four, and the three of a gated MLP.
  [[nodiscard]] std::int64_t layer_matrices() const;
  /// Numbers in the whole model: layers with two norms each, a last norm, embedding, head.
  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] Bytes weights() const { return Bytes{2 * parameters()}; }
  /// Keys and values of a prompt: 2 x layers x KV heads x head size x tokens numbers.
  [[nodiscard]] Bytes kv(std::int64_t tokens) const;
  /// FLOPs of causal attention of `tokens` after `context` others: 2 ((c + n)^2 - c^2) heads x
  /// head size a layer.
  [[nodiscard]] double attention_flops(std::int64_t context, std::int64_t tokens) const;
  /// Bytes that one GPU keeps while it computes a pass: inputs, outputs, and the widest product.
  [[nodiscard]] Bytes transient(std::int64_t tokens) const;
  /// FLOPs of a prefill: 2 for each number of the layers' matrices and token, 2 tokens^2 heads x
  /// head size a layer for causal attention, and the head for the last token.
  [[nodiscard]] double flops(std::int64_t tokens) const;
};

/// What a prefill of so many tokens takes, the whole model on one GPU.
struct PrefillPoint {
  std::int64_t tokens = 0;
  Duration time{};
  friend bool operator==(const PrefillPoint&, const PrefillPoint&) = default;
};

/// Where keys and values go: the decode ranks ([[service]]) of the datacenter that computed them.
struct DecodeLink {
  Bandwidth rate;          ///< of a GPU's interface inside the datacenter
  Duration latency{};      ///< one way
  Bytes slice{4 << 20};    ///< sent as one: training's messages wait for one at most
  int slots = 1024;        ///< prompts that a decode rank holds from their start to their token
  Duration first_token{};  ///< from the last key and value to the first token
};

/// A model that prompts are answered with in the bubbles of training: [prefill].
struct ServedModel {
  std::string name;
  std::optional<ServedDimensions> dimensions{};
  int stages = 1;                       ///< k: GPUs that hold equal parts of it
  std::vector<PrefillPoint> profile{};  ///< tokens ascend; empty: FLOPs at achieved_flops
  double achieved_flops = 0;            ///< FLOP/s of one GPU, where there is no profile
  Duration floor{};                     ///< the least that a prefill takes by FLOPs
  Duration hop{};                       ///< from the end of a stage to the begin of the next
  Duration guard{};                     ///< kept free at the end of a bubble
  std::optional<Duration> slo_ttft{};   ///< from arrival to the first token
  std::int64_t chunk = 0;               ///< most tokens of a pass; 0: a prompt is one pass
  int batch = 1;                        ///< most prompts of a pass
  std::int64_t skewed_for = 0;          ///< tokens: see skewed_pipelines(); 0: of equal places
  std::optional<Bytes> memory{};        ///< of a GPU, for its share of the weights
  double noise = 0;                     ///< standard deviation of real times over the estimate
  double attention_flops = 0;           ///< FLOP/s of attention; 0: the profile's highest rate
  Bytes prefix_cache{};                 ///< of a datacenter, for keys and values of leading blocks
  std::optional<DecodeLink> decode{};   ///< nullopt: keys, values and first token count nothing

  /// The time of a prefill: between points of the profile linear, half a nanosecond up; the first
  /// point's below it; nullopt above the last. By FLOPs at least `floor`. Precondition: tokens > 0.
  [[nodiscard]] std::optional<Duration> time(std::int64_t tokens) const;
  /// The share of stage `stage` of a time: equal ones, the remainder of a nanosecond on the first.
  [[nodiscard]] Duration stage_time(Duration whole, int stage) const {
    return whole / stages + (stage == 0 ? whole % stages : Duration{});
  }
  /// FLOP/s at which the profile's best size is computed, or achieved_flops; 0 without dimensions.
  [[nodiscard]] double highest_flops() const;
  /// The part of `time(tokens)` that its FLOPs take at the highest rate that the profile reaches;
  /// nullopt without dimensions, which FLOPs come from.
  [[nodiscard]] std::optional<double> useful_ns(std::int64_t tokens) const;
};

/// A published model that may be served.
struct ServedPreset {
  std::string name;
  ServedDimensions dimensions;
};
/// Llama 3.2 1B and Llama 3 8B (Meta), Mistral 7B v0.1 (Mistral AI), Phi-3-mini 4k (Microsoft),
/// Gemma 2B (Google): dimensions of the configurations published with their weights.
[[nodiscard]] const std::vector<ServedPreset>& served_presets();

}  // namespace longhaul

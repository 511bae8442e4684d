#pragma once

#include <optional>
#include <string>

#include "base/listed_enum.hpp"
#include "base/units.hpp"

namespace longhaul {

/// The second half of a layer: two products with GELU between them, or the gated one.
#define LONGHAUL_MLP_KINDS(X) X(gelu, "gelu") X(swiglu, "swiglu")
LONGHAUL_LISTED_ENUM(MlpKind, LONGHAUL_MLP_KINDS);
#define LONGHAUL_POSITION_KINDS(X) X(learned, "learned") X(rotary, "rotary") X(alibi, "alibi")
LONGHAUL_LISTED_ENUM(PositionKind, LONGHAUL_POSITION_KINDS);
/// Scores in memory, or fused (never written).
#define LONGHAUL_ATTENTION_KINDS(X) X(plain, "plain") X(flash, "flash")
LONGHAUL_LISTED_ENUM(AttentionKind, LONGHAUL_ATTENTION_KINDS);
/// What the backward computes again: nothing; the layer; attention's scores alone (Korthikanti et
/// al., arXiv 2205.05198, section 5).
#define LONGHAUL_RECOMPUTE_KINDS(X) X(none, "none") X(full, "full") X(selective, "selective")
LONGHAUL_LISTED_ENUM(RecomputeKind, LONGHAUL_RECOMPUTE_KINDS);
/// The numbers that layers multiply with.
#define LONGHAUL_PRECISIONS(X) X(fp32, "fp32") X(fp16, "fp16") X(bf16, "bf16")
LONGHAUL_LISTED_ENUM(Precision, LONGHAUL_PRECISIONS);

/// Dimensions of a decoder-only transformer (CrossPipe table 4; Atlas section 3). All counts are
/// of the whole model; `layers` counts embedding and output head as one layer each, as Llama 3
/// does.
struct Model {
  std::string name;
  int layers = 0;
  int hidden = 0;
  int intermediate = 0;
  int heads = 0;
  int kv_heads = 0;
  int vocabulary = 0;
  int sequence_length = 0;
  int microbatch_size = 1;
  int tensor_parallel = 1;
  /// Rate that one GPU reaches on this model, FLOP/s (CrossPipe appendix E: 5e14).
  double achieved_flops = 5e14;
  /// Peak rate of one GPU for MFU, FLOP/s; 0 where unknown.
  double peak_flops = 0;
  /// Rate of one GPU's memory, for the operators that compute little. H100, H200's data sheets.
  Bandwidth memory_bandwidth{8 * 3.35e12};
  /// All layers are decoder layers, embedding and head are left out (Centauri table 4); without a
  /// vocabulary.
  bool decoders_alone = false;
  MlpKind mlp = MlpKind::swiglu;
  PositionKind positions = PositionKind::rotary;
  AttentionKind attention = AttentionKind::flash;
  /// RecomputeKind::selective: scores are not kept, D and B compute them again before their own
  /// work. Flash attention keeps none as it is.
  bool selective_recompute = false;
  bool biases = false;                   ///< of linear maps, and of norms that subtract the mean
  std::optional<Precision> precision{};  ///< nullopt: bf16, or that of a profile

  [[nodiscard]] bool keeps_scores() const {
    return attention == AttentionKind::plain && !selective_recompute;
  }
  [[nodiscard]] bool computes_scores_again() const {
    return attention == AttentionKind::plain && selective_recompute;
  }
};

}  // namespace longhaul

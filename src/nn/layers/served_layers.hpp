#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "nn/layers/chunk.hpp"

namespace longhaul::nn {

/// So many tokens of a prompt, after those of it that were computed before.
struct PromptPart {
  std::int64_t prompt = 0;
  std::size_t tokens = 0;
};

/// Tokens of one prompt or of several that go through the layers together.
struct ServedPass {
  std::vector<PromptPart> parts;
  Buffer rows;  ///< [tokens of all parts, hidden]: what the layers so far have made of them
};

/// Consecutive layers of a model that answers prompts, with the keys and values of the tokens that
/// they have computed. A prompt comes in one pass or in several, each of which attends to all
/// tokens before it; passes of different prompts interleave freely, those of one prompt follow each
/// other in each layer. One thread at a time. Two stages of 3 decoders each, tokens [0, 5):
///     ServedPass pass = first.read({{prompt, 5}}, tokens);     // first: layers 0 to 3
///     for (int layer = 1; layer <= 3; ++layer) first.compute(pass, layer);
///     ServedPass rest = second.take({{prompt, 5}}, first.rows_of(pass));  // second: 4 to 7
///     for (int layer = 4; layer <= 6; ++layer) second.compute(rest, layer);
///     const std::vector<float> logits = second.logits(rest, 0);
class ServedLayers {
public:
  /// Weights follow from `seed` and their names alone; they are larger than those that training
  /// begins with, so that each number of a prompt shows in what follows from it. Of `shape` batch
  /// and sequence count nothing. Throws Error as Chunk does.
  ServedLayers(TensorOps& math, DeviceMemory& memory, const ModelShape& shape, LayerRange layers,
               std::uint64_t seed);

  /// Room for a prompt of so many tokens. Throws Error where memory does not hold it.
  void begin(std::int64_t prompt, std::size_t tokens);
  void forget(std::int64_t prompt);

  /// A pass from its tokens; of layers that hold the embedding. All parts' tokens one after the
  /// other.
  [[nodiscard]] ServedPass read(std::vector<PromptPart> parts,
                                std::span<const std::int32_t> tokens);
  /// A pass from the rows that the layers before these have made.
  [[nodiscard]] ServedPass take(std::vector<PromptPart> parts, std::span<const float> rows);
  /// The pass through one decoder layer.
  void compute(ServedPass& pass, int layer);
  [[nodiscard]] std::vector<float> rows_of(const ServedPass& pass);
  /// Of the last token of a part; of layers that hold the head.
  [[nodiscard]] std::vector<float> logits(const ServedPass& pass, std::size_t part);

  /// Keys, then values, of each of so many tokens: not turned by their position.
  [[nodiscard]] std::vector<float> keys_and_values(std::int64_t prompt, int layer,
                                                   std::size_t first, std::size_t count);
  /// Those of the first tokens, as another rank has computed them.
  void put_keys_and_values(std::int64_t prompt, int layer, std::span<const float> numbers);

  /// Numbers that keys and values of a token are in one layer.
  [[nodiscard]] std::size_t kept_width() const;
  [[nodiscard]] const ModelShape& shape() const { return shape_; }
  [[nodiscard]] std::span<const Parameter> parameters() const { return chunk_.parameters(); }

private:
  /// Queries, keys and values of a prompt's tokens so far, in one layer: rows of AttentionShape.
  /// Queries of earlier tokens are asked for nothing.
  struct Kept {
    Buffer rows;
    std::size_t tokens = 0;
  };
  [[nodiscard]] ArrayView weight(int layer, const char* what) const;
  [[nodiscard]] Buffer normed(ArrayView rows, ArrayView weight, std::size_t count);
  void attend(ServedPass& pass, int layer);
  void attend_part(Kept& kept, ArrayView fresh, std::size_t count, ArrayView attended);
  void feed_forward(ServedPass& pass, int layer);
  [[nodiscard]] Kept& kept_of(std::int64_t prompt, int layer);

  TensorOps& math_;
  DeviceMemory& memory_;
  ModelShape shape_;
  LayerRange layers_;
  AttentionShape heads_;
  Chunk chunk_;  ///< weights alone
  std::map<std::string, ArrayView> weights_;
  std::map<std::int64_t, std::map<int, Kept>> prompts_;
};

/// The number of the largest one, the first of equal ones.
[[nodiscard]] std::int32_t largest_of(std::span<const float> numbers);

}  // namespace longhaul::nn

#pragma once

#include <string>
#include <vector>

#include "nn/layers/shape.hpp"
#include "scenario/scenario.hpp"
#include "training/stage_shard.hpp"

namespace longhaul::training {

/// A rank among those that compute a microbatch together. With `sequence` each has its part of the
/// tokens, too, where heads and MLP do not cut the layers.
struct TensorPlace {
  int ranks = 1, place = 0;
  bool sequence = false;
  [[nodiscard]] int part_of(int all) const { return all / ranks; }
};

/// The weights of an operator, as a rank holds them.
struct OperatorParameter {
  std::string name;                ///< of the model's tensor (nn::Parameter::name); empty: none
  std::size_t whole = 0;           ///< numbers of that tensor
  std::vector<ShardRange> ranges;  ///< of its numbers that the rank holds, in its order

  [[nodiscard]] std::size_t count() const;
  /// Does every tensor rank hold all of it?
  [[nodiscard]] bool is_whole() const { return count() == whole; }
};

/// Of queries, keys and values the rows of the rank's heads, of gate and up its rows; of the
/// matrices that follow, the columns (Shoeybi et al. 2019, section 3). Normalizations, embedding
/// and head are whole on every rank.
[[nodiscard]] OperatorParameter parameter_of(const Operator& each, const nn::ModelShape& shape,
                                             const TensorPlace& place);

/// Throws Error where heads, keys, MLP or tokens do not divide by the tensor ranks.
void check_tensor_ranks(const nn::ModelShape& shape, const Parallel& parallel);

}  // namespace longhaul::training

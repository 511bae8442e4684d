#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/layers/chunk.hpp"
#include "nn/layers/shape.hpp"

namespace longhaul::training {

/// Numbers of one tensor that DeMo and SparseLoCo look at together.
struct ReplayTile {
  std::size_t rows = 0, columns = 0;
  std::vector<std::size_t> places;  ///< in the part, row by row
};

/// The whole tensors of the `count` numbers of a model of this shape from number `first` on, by
/// their places among these.
[[nodiscard]] std::vector<nn::ParameterPlace> replayed_tensors(const nn::ModelShape& shape,
                                                               std::size_t first,
                                                               std::size_t count);

/// A matrix is divided along both sides into as few equal pieces as make them at most `side` long,
/// a vector into as few of at most `length`. Without tensors all `count` numbers are one vector.
[[nodiscard]] std::vector<ReplayTile> replayed_tiles(std::span<const nn::ParameterPlace> tensors,
                                                     std::size_t count, std::size_t side,
                                                     std::size_t length);

}  // namespace longhaul::training

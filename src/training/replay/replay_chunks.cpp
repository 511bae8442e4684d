#include "training/replay/replay_chunks.hpp"

#include <utility>

namespace longhaul::training {
namespace {

/// The fewest equal pieces that are at most so long.
std::size_t pieces_of(std::size_t length, std::size_t most) {
  std::size_t pieces = 1;
  while (length % pieces != 0 || length / pieces > most) ++pieces;
  return pieces;
}

}  // namespace

std::vector<nn::ParameterPlace> replayed_tensors(const nn::ModelShape& shape, std::size_t first,
                                                 std::size_t count) {
  std::vector<nn::ParameterPlace> tensors;
  for (nn::ParameterPlace tensor : nn::parameter_places(shape, {0, shape.layers}).places) {
    if (tensor.first < first || tensor.first >= first + count) continue;
    tensor.first -= first;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<ReplayTile> replayed_tiles(std::span<const nn::ParameterPlace> tensors,
                                       std::size_t count, std::size_t side, std::size_t length) {
  nn::ParameterPlace all;
  all.rows = count;
  std::vector<ReplayTile> tiles;
  for (const nn::ParameterPlace& tensor :
       tensors.empty() ? std::span{&std::as_const(all), 1} : tensors) {
    if (tensor.rows == 0 || tensor.columns == 0) continue;
    const bool is_vector = tensor.columns == 1;
    const std::size_t height = is_vector ? 1 : tensor.rows;
    const std::size_t width = is_vector ? tensor.rows : tensor.columns;
    const std::size_t down = pieces_of(height, side);
    const std::size_t over = pieces_of(width, is_vector ? length : side);
    for (std::size_t y = 0; y < down; ++y)
      for (std::size_t x = 0; x < over; ++x) {
        ReplayTile tile{height / down, width / over, {}};
        for (std::size_t i = 0; i < tile.rows; ++i)
          for (std::size_t j = 0; j < tile.columns; ++j)
            tile.places.push_back(tensor.first + (y * tile.rows + i) * width + x * tile.columns +
                                  j);
        tiles.push_back(std::move(tile));
      }
  }
  return tiles;
}

}  // namespace longhaul::training

#include "compress/rivals/tensor_chunks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/kept_share.hpp"

namespace longhaul::compress {

std::size_t largest_divisor(std::size_t number, std::size_t most) {
  std::size_t divisor = std::min(number, most);
  while (number % divisor != 0) --divisor;
  return divisor;
}

std::vector<TensorChunk> chunks_of(std::span<const TensorShape> tensors, std::size_t count,
                                   std::size_t across, std::size_t along) {
  const TensorShape whole{0, count, 1};
  std::vector<TensorChunk> chunks;
  for (const TensorShape& tensor : tensors.empty() ? std::span{&whole, 1} : tensors) {
    if (tensor.rows == 0 || tensor.columns == 0) continue;  // of a part without layers
    if (tensor.columns == 1) {
      const std::size_t columns = largest_divisor(tensor.rows, along);
      for (std::size_t x = 0; x < tensor.rows; x += columns)
        chunks.push_back({tensor.first + x, 1, columns, columns});
      continue;
    }
    const std::size_t rows = largest_divisor(tensor.rows, across);
    const std::size_t columns = largest_divisor(tensor.columns, across);
    for (std::size_t y = 0; y < tensor.rows; y += rows)
      for (std::size_t x = 0; x < tensor.columns; x += columns)
        chunks.push_back({tensor.first + y * tensor.columns + x, rows, columns, tensor.columns});
  }
  return chunks;
}

std::size_t kept_of_chunk(std::size_t size, double keep) {
  return static_cast<std::size_t>(blocks_to_keep(static_cast<std::int64_t>(size), keep, 1));
}

std::int64_t kept_of_chunks(std::span<const TensorChunk> chunks, double keep) {
  std::int64_t kept = 0;
  for (const TensorChunk& chunk : chunks)
    kept += static_cast<std::int64_t>(kept_of_chunk(chunk.size(), keep));
  return kept;
}

std::vector<std::uint32_t> largest_places(std::span<const float> numbers, std::size_t wanted) {
  std::vector<std::uint32_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return std::fabs(numbers[a]) > std::fabs(numbers[b]);
  });
  order.resize(wanted);
  std::ranges::sort(order);
  return order;
}

}  // namespace longhaul::compress

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace longhaul::compress {

/// Among the numbers of a part, row by row; a vector has one column.
struct TensorShape {
  std::size_t first = 0, rows = 0, columns = 1;
};

/// Numbers of one tensor that are looked at together, row by row.
struct TensorChunk {
  std::size_t first = 0;              ///< place of its first number in the part
  std::size_t rows = 1, columns = 1;  ///< a vector's is one row
  std::size_t stride = 1;             ///< places from one row to the next

  [[nodiscard]] std::size_t size() const { return rows * columns; }
  /// Of number `index`, in the part.
  [[nodiscard]] std::size_t place(std::size_t index) const {
    return first + index / columns * stride + index % columns;
  }
};

/// The largest divisor of `number` that is at most `most`; both are above 0.
[[nodiscard]] std::size_t largest_divisor(std::size_t number, std::size_t most);

/// As the authors of DeMo and SparseLoCo cut: a matrix into chunks of at most `across` rows and
/// columns, a vector into chunks of at most `along` numbers, all of a tensor equal in size (the
/// largest divisors of its dimensions). In the order of the tensors, of a matrix chunks of the
/// first rows first. Without tensors a part of `count` numbers is one vector.
[[nodiscard]] std::vector<TensorChunk> chunks_of(std::span<const TensorShape> tensors,
                                                 std::size_t count, std::size_t across,
                                                 std::size_t along);

/// max(1, floor(size keep)).
[[nodiscard]] std::size_t kept_of_chunk(std::size_t size, double keep);
/// Of all chunks.
[[nodiscard]] std::int64_t kept_of_chunks(std::span<const TensorChunk> chunks, double keep);

/// The places of the `wanted` largest magnitudes, ascending; of equal ones the lowest.
[[nodiscard]] std::vector<std::uint32_t> largest_places(std::span<const float> numbers,
                                                        std::size_t wanted);

}  // namespace longhaul::compress

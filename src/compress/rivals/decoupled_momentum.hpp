#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/rivals/tensor_chunks.hpp"
#include "compress/sparse_set.hpp"

namespace longhaul::compress {

/// The most numbers along a side of what is transformed together.
inline constexpr std::size_t kDctChunk = 64;

/// Orthonormal cosine transform of `rows` by `columns` numbers, row by row, along rows and then
/// along columns, and its inverse; both sides have at most kDctChunk numbers.
void cosine_transform(std::span<const float> numbers, std::size_t rows, std::size_t columns,
                      std::span<float> coefficients);
void inverse_cosine_transform(std::span<const float> coefficients, std::size_t rows,
                              std::size_t columns, std::span<float> numbers);

/// One replica's side of DeMo (Peng, Quesnelle, Kingma 2024): of its own momentum it sends the
/// largest coefficients of the cosine transform of each chunk, takes them out of the momentum, and
/// keeps the rest. A step is the sign of the mean over replicas, by demo_step.
class DecoupledMomentum {
public:
  /// kept_of_chunk() coefficients of each chunk (chunks_of(.., kDctChunk, kDctChunk)) of a part of
  /// `count` numbers. Throws Error unless `keep` is a share, and the decay from 0 to 1.
  DecoupledMomentum(double keep, float decay, std::vector<TensorChunk> chunks, std::size_t count);

  /// Coefficients: a vector of all chunks, one after the other.
  [[nodiscard]] SparseSet take(std::span<const float> gradient);
  /// The numbers of coefficients that were summed over replicas; between chunks zeros.
  [[nodiscard]] std::vector<float> numbers_of(const SparseSet& coefficients) const;
  [[nodiscard]] std::int64_t coefficients() const { return coefficients_; }
  /// All that it remembers between two calls.
  [[nodiscard]] const std::vector<float>& momenta() const { return momenta_; }
  /// Of one that was made the same. Throws Error where it was not.
  void restore(std::vector<float> momenta);

private:
  double keep_;
  float decay_;
  std::vector<TensorChunk> chunks_;
  std::int64_t coefficients_ = 0;  ///< of all chunks
  std::vector<float> momenta_;
};

/// weights -= rate x sign(numbers); a zero moves nothing.
void demo_step(std::span<float> weights, std::span<const float> numbers, float rate);

}  // namespace longhaul::compress

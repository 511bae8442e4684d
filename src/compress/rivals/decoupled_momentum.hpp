#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/sparse_set.hpp"

namespace longhaul::compress {

/// Numbers that are transformed together; a vector is filled up with zeros.
inline constexpr std::size_t kDctChunk = 64;

/// Orthonormal cosine transform of kDctChunk numbers, and its inverse.
void cosine_transform(std::span<const float> numbers, std::span<float> coefficients);
void inverse_cosine_transform(std::span<const float> coefficients, std::span<float> numbers);

/// One replica's side of DeMo (Peng, Quesnelle, Kingma 2024): of its own momentum it sends the
/// largest coefficients of the cosine transform of each chunk, takes them out of the momentum, and
/// keeps the rest. A step is the sign of the mean over replicas, by demo_step.
class DecoupledMomentum {
public:
  /// `kept` coefficients of each chunk. Throws Error unless they are from 1 to kDctChunk, and the
  /// decay from 0 to 1.
  DecoupledMomentum(int kept, float decay, std::size_t count);

  /// Coefficients: a vector of whole chunks.
  [[nodiscard]] SparseSet take(std::span<const float> gradient);
  /// All that it remembers between two calls.
  [[nodiscard]] const std::vector<float>& momenta() const { return momenta_; }
  /// Of one that was made the same. Throws Error where it was not.
  void restore(std::vector<float> momenta);

private:
  std::size_t kept_;
  float decay_;
  std::size_t count_;
  std::vector<float> momenta_;  ///< filled up to whole chunks
};

/// The numbers of coefficients that were summed over replicas.
[[nodiscard]] std::vector<float> numbers_of(const SparseSet& coefficients, std::size_t count);

/// weights -= rate x sign(numbers); a zero moves nothing.
void demo_step(std::span<float> weights, std::span<const float> numbers, float rate);

}  // namespace longhaul::compress

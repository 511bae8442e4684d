#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/rivals/tensor_chunks.hpp"
#include "compress/sparse_set.hpp"

namespace longhaul::compress {

/// How replicas that train by themselves meet. The outer gradient of a replica is the anchor, where
/// all began, less its weights now.
struct OuterSettings {
  float rate = 1;      ///< DiLoCo (Douillard et al. 2023): 0.7
  float momentum = 0;  ///< of Nesterov; DiLoCo: 0.9
};

/// One replica's side of local SGD (rate 1, no momentum) and DiLoCo: the anchor and the outer
/// momentum, which all replicas have equal.
class OuterSteps {
public:
  OuterSteps(const OuterSettings& settings, std::span<const float> weights);

  /// The outer step with the mean of all replicas' outer gradients; `weights` become the anchor.
  void merge(std::span<const float> mean, std::span<float> weights);
  /// The outer momentum, for a checkpoint: with the anchor, all that is remembered.
  [[nodiscard]] const std::vector<float>& momenta() const { return momenta_; }
  void set_momenta(std::vector<float> momenta);

private:
  OuterSettings settings_;
  std::vector<float> anchor_, momenta_;
};

/// Makes of numbers whole multiples, up to 7, of their largest magnitude over 7, for each 128 of
/// them.
void round_to_int4(std::span<float> numbers);
/// Of such a group of numbers the step, 0 of nothing, and how many of them a number is.
inline constexpr std::size_t kInt4Group = 128;
[[nodiscard]] float int4_step(std::span<const float> group);
[[nodiscard]] int int4_steps(float number, float step);

/// The most numbers along a side of a matrix' chunk; a vector's has its square.
inline constexpr std::size_t kSparseLocoSide = 64;

/// One replica's side of SparseLoCo (Sarfi et al. 2025): the largest numbers of the outer gradient
/// and of what earlier ones left, which decays instead of an outer momentum; 2 bits each.
class SparseOuterGradient {
public:
  /// kept_of_chunk() numbers of each chunk (chunks_of(.., kSparseLocoSide, its square)) of a part
  /// of `count` numbers. Throws Error unless `keep` is a share, and the decay from 0 to 1.
  SparseOuterGradient(double keep, float decay, std::vector<TensorChunk> chunks, std::size_t count);
  /// As receivers decode it; the outer step is the outer rate times the mean over replicas.
  [[nodiscard]] SparseSet take(std::span<const float> outer_gradient);
  /// All that it remembers between two calls.
  [[nodiscard]] const std::vector<float>& residual() const { return residual_; }
  /// Of one that was made the same. Throws Error where it was not.
  void restore(std::vector<float> residual);

private:
  double keep_;
  float decay_;
  std::vector<TensorChunk> chunks_;
  std::vector<float> residual_;
};

/// A sign and one of two magnitudes: the means of those below and of those from the mean on.
void round_to_two_bits(std::span<float> numbers);

}  // namespace longhaul::compress

#pragma once

#include <memory>
#include <span>
#include <string>

#include "nn/layers/chunk.hpp"
#include "training/parts/rival_methods.hpp"

namespace longhaul::training {

/// PowerSGD (Vogels et al. 2019) of a part, in two rounds: P of each matrix, beside the vectors as
/// they are, and then Q. Each is a vector of f32, tensor by tensor, and both are summed: gradients
/// are shares of the mean. A step is of the optimizer, with P Q^T and the mean of the vectors.
///
/// Q of tensor j of part k is drawn from derived_seed(3, k, j), the same by all replicas. What
/// waits is a share, too: over all replicas it is what the mean still lacks.
///
/// Throws Error where check_rank() does, and where updates may be late: an answer needs the sum
/// that the next gradient is added to.
[[nodiscard]] std::unique_ptr<PartMethod> make_power_sgd(const RivalSettings& settings,
                                                         const PartPlace& place,
                                                         const StepSettings& step);

/// Throws Error where the rank is below 1 or above a dimension of one of the matrices.
void check_rank(int rank, std::span<const nn::ParameterPlace> tensors);

/// Numbers that a replica sends of these tensors.
struct LowRankNumbers {
  std::size_t first = 0;   ///< in the first round: P of matrices, and all of vectors
  std::size_t second = 0;  ///< Q of matrices
};
[[nodiscard]] LowRankNumbers low_rank_numbers(int rank,
                                              std::span<const nn::ParameterPlace> tensors);

}  // namespace longhaul::training

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "nn/layers/chunk.hpp"
#include "training/replay/replay_set.hpp"

namespace longhaul::training {

/// Sum of what replicas send, where sites are given: of each site in the order of its replicas, and
/// then of the sites in theirs. `sites`: of each replica, or empty.
[[nodiscard]] std::vector<float> replayed_sum(const std::vector<std::vector<float>>& sent,
                                              std::span<const int> sites);

/// PowerSGD of one part, all replicas at once: docs/training.md, "What an iteration computes". By
/// indices and plain loops; compress::PowerSgd is what ranks use.
class ReplayLowRank {
public:
  /// Of part `part` of the model, of `count` numbers, with these tensors among them.
  ReplayLowRank(int rank, std::span<const nn::ParameterPlace> tensors,
                std::span<const int> site_of_replica, bool through_sites, int part,
                std::size_t count);

  /// The mean that all replicas step with. `gradients` [replica][count] are shares of it.
  [[nodiscard]] ReplaySet run(std::span<const std::span<const float>> gradients);
  /// Of a replica: what waits.
  [[nodiscard]] std::span<const float> residual(std::size_t replica) const {
    return residuals_[replica];
  }

private:
  struct Matrix {
    nn::ParameterPlace place;
    std::vector<float> q;  ///< columns x rank
    Random random;
  };
  void draw(Matrix& matrix, std::size_t k);
  void run_matrix(Matrix& matrix, ReplaySet& mean);

  std::size_t rank_;
  std::vector<int> sites_;  ///< of each replica; empty: all sets go to all replicas
  std::vector<nn::ParameterPlace> vectors_;
  std::vector<Matrix> matrices_;
  std::vector<std::vector<float>> residuals_;  ///< of each replica
};

}  // namespace longhaul::training

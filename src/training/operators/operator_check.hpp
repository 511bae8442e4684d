#pragma once

#include <memory>
#include <span>
#include <vector>

#include "training/gradient_check.hpp"

namespace longhaul::training {

/// What a rank holds of the model after an iteration: stretches of its numbers
/// (nn::Chunk::all_weights()), their gradients, and the weights after the optimizer's step.
struct RankNumbers {
  std::vector<ShardRange> held;
  std::vector<float> gradients, masters;
};

/// Holds what ranks computed together, tensors and weights cut over them, against one rank that
/// computes all of it: GradientCheck for stretches of any length. A tensor is as far off as the
/// norm of the difference is of the norm of the same numbers of the reference, over all that a rank
/// holds of it.
class OperatorCheck {
public:
  /// `tensors`: all of the model's.
  OperatorCheck(std::unique_ptr<WholeModel> reference, std::vector<ParameterExtent> tensors);

  /// Iterations in turn; `step` counts from 1. Everything that differs by more than allowed, and
  /// tensors of which no rank holds some numbers.
  [[nodiscard]] std::vector<WrongTensor> check(int iteration, double loss,
                                               std::span<const RankNumbers> ranks, int step);
  /// The largest difference of a gradient so far, relative.
  [[nodiscard]] double largest() const { return largest_; }
  [[nodiscard]] int checked() const { return checked_; }
  [[nodiscard]] double allowed() const { return tolerance_.same_type; }

private:
  using Numbers = std::vector<float> RankNumbers::*;
  [[nodiscard]] std::vector<float> whole(std::span<const RankNumbers> ranks, Numbers which) const;
  void compare(std::span<const RankNumbers> ranks, Numbers which, std::span<const float> expected,
               std::vector<WrongTensor>& wrong);
  void find_missing(std::span<const RankNumbers> ranks, std::vector<WrongTensor>& wrong) const;

  std::unique_ptr<WholeModel> reference_;
  std::vector<ParameterExtent> tensors_;  ///< ascending, each once
  Tolerance tolerance_;
  std::vector<float> began_with_;  ///< the model's masters
  double largest_ = 0;
  int checked_ = 0;
};

}  // namespace longhaul::training

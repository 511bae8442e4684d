#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace longhaul::compress {

/// One replica's side of PowerSGD (Vogels, Karimireddy, Jaggi 2019, algorithm 1) for one matrix of
/// gradients: with feedback and a warm start. An iteration is three calls, between which the
/// replicas average what the calls return:
///
///     auto p = mean_of_all(power.project(gradient));
///     auto q = mean_of_all(power.answer(p));
///     power.decoded(q);  // the mean gradient, of rank R; exact where it has no higher one
///
/// What travels: (rows + columns) rank numbers. Where gradients are shares of the mean, each of
/// `share`, they are summed instead, and a replica leaves its share less than `share` of the sum.
class PowerSgd {
public:
  /// Between two iterations; P is of the iteration under way.
  struct State {
    std::vector<float> residual, q;
    Random random{0};  ///< where the next column is drawn from
  };

  /// Row-major. Every replica takes the same seed. Throws Error where rank is below 1.
  PowerSgd(std::size_t rows, std::size_t columns, std::size_t rank, std::uint64_t seed,
           float share = 1);

  /// P = M Q, rows x rank, of M = gradient + what was left.
  [[nodiscard]] std::vector<float> project(std::span<const float> gradient);
  /// Q = M^T P, columns x rank, with the columns of the mean P made orthonormal.
  [[nodiscard]] std::vector<float> answer(std::vector<float> mean_p);
  /// P Q^T; what this replica's M has beyond it is left for the next iteration.
  [[nodiscard]] std::vector<float> decoded(std::vector<float> mean_q);

  [[nodiscard]] const std::vector<float>& residual() const { return sum_; }
  [[nodiscard]] std::size_t numbers_sent() const { return (rows_ + columns_) * rank_; }
  [[nodiscard]] std::size_t numbers_of_p() const { return rows_ * rank_; }
  [[nodiscard]] std::size_t numbers_of_q() const { return columns_ * rank_; }

  [[nodiscard]] State state() const { return {sum_, q_, random_}; }
  /// Of one that was made the same. Throws Error where it was not.
  void restore(State state);

private:
  /// Draws column k of Q: of all at first, later of those that what was sent did not span, which
  /// would stay zero. Every replica has the same Q and draws the same.
  void refill(std::size_t k);

  std::size_t rows_, columns_, rank_;
  float share_;
  std::vector<float> sum_;  ///< M; between iterations the residual
  std::vector<float> p_, q_;
  Random random_;
};

/// Makes the columns of a row-major matrix orthonormal, one after the other (twice Gram-Schmidt);
/// a column that the earlier ones span becomes zero.
void make_orthonormal(std::span<float> matrix, std::size_t rows, std::size_t columns);

}  // namespace longhaul::compress

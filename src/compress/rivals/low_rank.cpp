#include "compress/rivals/low_rank.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace longhaul::compress {
namespace {

double column_product(std::span<const float> matrix, std::size_t columns, std::size_t a,
                      std::size_t b) {
  double sum = 0;
  for (std::size_t row = 0; row * columns < matrix.size(); ++row)
    sum += static_cast<double>(matrix[row * columns + a]) *
           static_cast<double>(matrix[row * columns + b]);
  return sum;
}

}  // namespace

void make_orthonormal(std::span<float> matrix, std::size_t rows, std::size_t columns) {
  constexpr double kSpanned = 1e-5;  // of its length, left by rounding
  for (std::size_t column = 0; column < columns; ++column) {
    const double before = std::sqrt(column_product(matrix, columns, column, column));
    for (int again = 0; again < 2; ++again)
      for (std::size_t other = 0; other < column; ++other) {
        const auto along = static_cast<float>(column_product(matrix, columns, other, column));
        for (std::size_t row = 0; row < rows; ++row)
          matrix[row * columns + column] -= along * matrix[row * columns + other];
      }
    const double length = std::sqrt(column_product(matrix, columns, column, column));
    const double scale = length > kSpanned * before ? 1 / length : 0;
    for (std::size_t row = 0; row < rows; ++row)
      matrix[row * columns + column] =
          static_cast<float>(static_cast<double>(matrix[row * columns + column]) * scale);
  }
}

PowerSgd::PowerSgd(std::size_t rows, std::size_t columns, std::size_t rank, std::uint64_t seed,
                   float share)
    : rows_{rows},
      columns_{columns},
      rank_{std::min({rank, rows, columns})},
      share_{share},
      sum_(rows * columns),
      q_(columns * rank_),
      random_{seed} {
  if (rank == 0) fail("powersgd: rank 0 sends nothing. Give one from 1 on, as in powersgd:2.");
  for (std::size_t k = 0; k < rank_; ++k) refill(k);
}

void PowerSgd::refill(std::size_t k) {
  for (std::size_t column = 0; column < columns_; ++column)
    q_[column * rank_ + k] = static_cast<float>(random_.normal());
}

std::vector<float> PowerSgd::project(std::span<const float> gradient) {
  LONGHAUL_ASSERT(gradient.size() == sum_.size(), "{} of {}", gradient.size(), sum_.size());
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += gradient[i];
  std::vector<float> p(rows_ * rank_);
  for (std::size_t row = 0; row < rows_; ++row)
    for (std::size_t column = 0; column < columns_; ++column)
      for (std::size_t k = 0; k < rank_; ++k)
        p[row * rank_ + k] += sum_[row * columns_ + column] * q_[column * rank_ + k];
  return p;
}

std::vector<float> PowerSgd::answer(std::vector<float> mean_p) {
  p_ = std::move(mean_p);
  make_orthonormal(p_, rows_, rank_);
  std::vector<float> q(columns_ * rank_);
  for (std::size_t row = 0; row < rows_; ++row)
    for (std::size_t column = 0; column < columns_; ++column)
      for (std::size_t k = 0; k < rank_; ++k)
        q[column * rank_ + k] += sum_[row * columns_ + column] * p_[row * rank_ + k];
  return q;
}

std::vector<float> PowerSgd::decoded(std::vector<float> mean_q) {
  q_ = std::move(mean_q);
  std::vector<float> product(rows_ * columns_);
  for (std::size_t row = 0; row < rows_; ++row)
    for (std::size_t column = 0; column < columns_; ++column) {
      float& number = product[row * columns_ + column];
      for (std::size_t k = 0; k < rank_; ++k)
        number += p_[row * rank_ + k] * q_[column * rank_ + k];
      sum_[row * columns_ + column] -= share_ * number;
    }
  for (std::size_t k = 0; k < rank_; ++k)
    if (column_product(q_, rank_, k, k) == 0) refill(k);
  return product;
}

void PowerSgd::restore(State state) {
  if (state.residual.size() != sum_.size() || state.q.size() != q_.size())
    fail("powersgd: what is kept has {} and {} numbers instead of {} and {}. Begin anew.",
         state.residual.size(), state.q.size(), sum_.size(), q_.size());
  sum_ = std::move(state.residual);
  q_ = std::move(state.q);
  random_ = state.random;
}

}  // namespace longhaul::compress

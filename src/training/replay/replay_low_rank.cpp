#include "training/replay/replay_low_rank.hpp"

#include <cmath>
#include <map>

#include "base/index.hpp"

namespace longhaul::training {
namespace {

constexpr std::uint64_t kReplaySeedOfQ = 3;
/// Of its length before, which rounding leaves of a column that earlier ones span.
constexpr double kReplayNothingLeft = 1e-5;

void add_in_order(std::vector<float>& sum, std::span<const float> numbers) {
  if (sum.empty()) {
    sum.assign(numbers.begin(), numbers.end());
    return;
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + numbers[i];
}

std::vector<double> column_of(std::span<const float> matrix, std::size_t columns, std::size_t k) {
  std::vector<double> column;
  for (std::size_t i = k; i < matrix.size(); i += columns)
    column.push_back(static_cast<double>(matrix[i]));
  return column;
}

double product_of(const std::vector<double>& ones, const std::vector<double>& others) {
  double sum = 0;
  for (std::size_t i = 0; i < ones.size(); ++i) sum += ones[i] * others[i];
  return sum;
}

/// Gram-Schmidt, twice for each column, from the first on.
void orthonormalize(std::vector<float>& matrix, std::size_t columns) {
  for (std::size_t k = 0; k < columns; ++k) {
    const auto length = [&] {
      const std::vector<double> column = column_of(matrix, columns, k);
      return std::sqrt(product_of(column, column));
    };
    const double before = length();
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t other = 0; other < k; ++other) {
        const std::vector<double> along = column_of(matrix, columns, other);
        const auto by = static_cast<float>(product_of(along, column_of(matrix, columns, k)));
        for (std::size_t i = k; i < matrix.size(); i += columns)
          matrix[i] = matrix[i] - by * matrix[i - k + other];
      }
    const double left = length();
    const double scale = left > kReplayNothingLeft * before ? 1 / left : 0;
    for (std::size_t i = k; i < matrix.size(); i += columns)
      matrix[i] = static_cast<float>(static_cast<double>(matrix[i]) * scale);
  }
}

}  // namespace

std::vector<float> replayed_sum(const std::vector<std::vector<float>>& sent,
                                std::span<const int> sites) {
  std::map<int, std::vector<float>> of_sites;
  for (std::size_t r = 0; r < sent.size(); ++r)
    add_in_order(of_sites[sites.empty() ? 0 : sites[r]], sent[r]);
  std::vector<float> sum;
  for (const auto& [site, of_site] : of_sites) add_in_order(sum, of_site);
  return sum;
}

ReplayLowRank::ReplayLowRank(int rank, std::span<const nn::ParameterPlace> tensors,
                             std::span<const int> site_of_replica, bool through_sites, int part,
                             std::size_t count)
    : rank_{to_size(rank)}, residuals_(site_of_replica.size(), std::vector<float>(count)) {
  if (through_sites) sites_.assign(site_of_replica.begin(), site_of_replica.end());
  for (std::size_t j = 0; j < tensors.size(); ++j) {
    if (tensors[j].columns == 1) {
      vectors_.push_back(tensors[j]);
      continue;
    }
    Matrix matrix{tensors[j], std::vector<float>(tensors[j].columns * rank_),
                  Random{derived_seed(kReplaySeedOfQ, static_cast<std::uint64_t>(part), j)}};
    for (std::size_t k = 0; k < rank_; ++k) draw(matrix, k);
    matrices_.push_back(std::move(matrix));
  }
}

void ReplayLowRank::draw(Matrix& matrix, std::size_t k) {
  for (std::size_t column = 0; column < matrix.place.columns; ++column)
    matrix.q[column * rank_ + k] = static_cast<float>(matrix.random.normal());
}

ReplaySet ReplayLowRank::run(std::span<const std::span<const float>> gradients) {
  ReplaySet mean{residuals_.front().size()};
  mean.has.assign(mean.has.size(), 1);
  for (const nn::ParameterPlace& vector : vectors_) {
    std::vector<std::vector<float>> sent;
    for (const std::span<const float> gradient : gradients) {
      const auto numbers = gradient.subspan(vector.first, vector.rows);
      sent.emplace_back(numbers.begin(), numbers.end());
    }
    const std::vector<float> sum = replayed_sum(sent, sites_);
    for (std::size_t i = 0; i < sum.size(); ++i) mean.numbers[vector.first + i] = sum[i];
  }
  for (Matrix& matrix : matrices_) {
    for (std::size_t r = 0; r < gradients.size(); ++r)
      for (std::size_t i = 0; i < matrix.place.count(); ++i) {
        float& waiting = residuals_[r][matrix.place.first + i];
        waiting = waiting + gradients[r][matrix.place.first + i];
      }
    run_matrix(matrix, mean);
  }
  return mean;
}

/// Each number of a product is added up in the order of the index that is summed over, from 0.
void ReplayLowRank::run_matrix(Matrix& matrix, ReplaySet& mean) {
  const std::size_t first = matrix.place.first;
  const std::size_t rows = matrix.place.rows, columns = matrix.place.columns;
  std::vector<std::vector<float>> of_replicas;
  for (const std::vector<float>& waiting : residuals_) {
    std::vector<float>& p = of_replicas.emplace_back(rows * rank_);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < rank_; ++k)
        for (std::size_t j = 0; j < columns; ++j)
          p[i * rank_ + k] += waiting[first + i * columns + j] * matrix.q[j * rank_ + k];
  }
  std::vector<float> p = replayed_sum(of_replicas, sites_);
  orthonormalize(p, rank_);
  of_replicas.clear();
  for (const std::vector<float>& waiting : residuals_) {
    std::vector<float>& q = of_replicas.emplace_back(columns * rank_);
    for (std::size_t j = 0; j < columns; ++j)
      for (std::size_t k = 0; k < rank_; ++k)
        for (std::size_t i = 0; i < rows; ++i)
          q[j * rank_ + k] += waiting[first + i * columns + j] * p[i * rank_ + k];
  }
  matrix.q = replayed_sum(of_replicas, sites_);
  const float share = 1 / static_cast<float>(residuals_.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      float number = 0;
      for (std::size_t k = 0; k < rank_; ++k)
        number = number + p[i * rank_ + k] * matrix.q[j * rank_ + k];
      mean.numbers[first + i * columns + j] = number;
      for (std::vector<float>& waiting : residuals_) {
        float& left = waiting[first + i * columns + j];
        left = left - share * number;
      }
    }
  for (std::size_t k = 0; k < rank_; ++k) {
    const std::vector<double> column = column_of(matrix.q, rank_, k);
    if (product_of(column, column) == 0) draw(matrix, k);
  }
}

}  // namespace longhaul::training

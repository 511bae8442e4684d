#include "compress/rivals/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

std::vector<float> mean_of(const std::vector<std::vector<float>>& all) {
  std::vector<float> mean(all.front().size());
  for (const std::vector<float>& one : all)
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += one[i] / static_cast<float>(all.size());
  return mean;
}

/// What all replicas decode.
std::vector<float> exchanged(std::vector<PowerSgd>& replicas,
                             const std::vector<std::vector<float>>& gradients) {
  std::vector<std::vector<float>> p, q;
  for (std::size_t r = 0; r < replicas.size(); ++r) p.push_back(replicas[r].project(gradients[r]));
  for (PowerSgd& replica : replicas) q.push_back(replica.answer(mean_of(p)));
  std::vector<float> decoded;
  for (PowerSgd& replica : replicas) {
    const std::vector<float> before = std::exchange(decoded, replica.decoded(mean_of(q)));
    EXPECT_TRUE(before.empty() || before == decoded) << "replicas differ";
  }
  return decoded;
}

std::vector<float> of_rank(std::size_t rows, std::size_t columns, std::size_t rank,
                           std::uint64_t seed) {
  const std::vector<float> left = gradient_of(rows * rank, seed);
  const std::vector<float> right = gradient_of(columns * rank, seed + 1);
  std::vector<float> matrix(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      for (std::size_t k = 0; k < rank; ++k)
        matrix[i * columns + j] += left[i * rank + k] * right[j * rank + k];
  return matrix;
}

TEST(PowerSgd, IsExactOnAGradientOfItsRankOrLess) {
  for (const std::size_t rank : {1U, 2U, 4U}) {
    const std::vector<float> gradient = of_rank(20, 30, rank, rank);
    std::vector<PowerSgd> replicas(2, {20, 30, 4, 7});
    const std::vector<float> decoded = exchanged(replicas, {gradient, gradient});
    double largest = 0;  // numbers of 32 bits are exact to a part of it
    for (const float each : gradient)
      largest = std::max(largest, std::fabs(static_cast<double>(each)));
    for (std::size_t i = 0; i < gradient.size(); ++i)
      ASSERT_NEAR(decoded[i], gradient[i], 2e-6 * largest) << "rank " << rank << " number " << i;
    EXPECT_EQ(replicas[0].numbers_sent(), 4U * 50);
  }
}

void expect_near(const std::vector<float>& decoded, const std::vector<float>& gradient) {
  double largest = 0;
  for (const float each : gradient)
    largest = std::max(largest, std::fabs(static_cast<double>(each)));
  for (std::size_t i = 0; i < gradient.size(); ++i)
    ASSERT_NEAR(decoded[i], gradient[i], 1e-5 * largest) << "number " << i;
}

TEST(PowerSgd, GainsRanksAgain) {
  std::vector<PowerSgd> replicas(2, {20, 30, 2, 7});
  const std::vector<float> zeros(600);
  for (const std::size_t rank : {1U, 1U, 2U}) {
    const std::vector<float> gradient = of_rank(20, 30, rank, 3 + rank);
    expect_near(exchanged(replicas, {gradient, gradient}), gradient);
  }
  // A sum of nothing, then one that each replica has a part of.
  std::vector<PowerSgd> fresh(2, {20, 30, 2, 7});
  EXPECT_EQ(exchanged(fresh, {zeros, zeros}), zeros);
  const std::vector<float> gradient = of_rank(20, 30, 2, 9);
  std::vector<float> doubled = gradient;
  for (float& number : doubled) number *= 2;
  expect_near(exchanged(fresh, {doubled, zeros}), gradient);
}

TEST(PowerSgd, LosesNothing) {
  std::vector<PowerSgd> replicas(3, {12, 8, 2, 1});
  std::vector<double> sent(96), all(96);
  for (std::uint64_t step = 0; step < 10; ++step) {
    std::vector<std::vector<float>> gradients;
    for (std::uint64_t r = 0; r < 3; ++r) gradients.push_back(gradient_of(96, 10 * step + r));
    const std::vector<float> decoded = exchanged(replicas, gradients);
    for (std::size_t i = 0; i < 96; ++i) {
      sent[i] += decoded[i];
      for (const auto& gradient : gradients) all[i] += gradient[i] / 3.0;
    }
  }
  for (std::size_t i = 0; i < 96; ++i) {
    double left = 0;
    for (const PowerSgd& replica : replicas) left += replica.residual()[i] / 3.0;
    EXPECT_NEAR(sent[i] + left, all[i], 1e-3);
  }
}

TEST(PowerSgd, RefusesARankOfNothing) { EXPECT_THROW((PowerSgd{2, 2, 0, 1}), Error); }

}  // namespace
}  // namespace longhaul::compress::test

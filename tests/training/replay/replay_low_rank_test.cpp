#include "training/replay/replay_low_rank.hpp"

#include <gtest/gtest.h>

#include "compress/rivals/low_rank.hpp"
#include "training/replay/compressed_parts.hpp"

namespace longhaul::testing {
namespace {

using training::ReplayLowRank;

/// A vector between two matrices; the first has fewer rows than columns.
std::vector<nn::ParameterPlace> some_tensors() {
  return {{"wide", 0, 9, 20}, {"vector", 192, 7, 1}, {"tall", 256, 16, 6}};
}
constexpr std::size_t kLowRankCount = 384, kLowRankReplicas = 3;

std::vector<std::vector<float>> shares_at(int iteration) {
  std::vector<std::vector<float>> all(kLowRankReplicas, std::vector<float>(kLowRankCount));
  for (std::size_t r = 0; r < kLowRankReplicas; ++r) {
    const auto numbers =
        numbers_like_gradients(kLowRankCount, 10 * static_cast<std::uint64_t>(iteration) + r);
    for (const nn::ParameterPlace& tensor : some_tensors())
      for (std::size_t i = tensor.first; i < tensor.first + tensor.count(); ++i)
        all[r][i] = iteration == 2 ? 0 : numbers[i];  // in the third all columns are drawn anew
  }
  return all;
}

/// compress/ of each replica and matrix, summed as ranks sum.
class PowerOfRanks {
public:
  PowerOfRanks(std::size_t rank, int part) {
    for (std::size_t r = 0; r < kLowRankReplicas; ++r)
      for (std::size_t j = 0; j < some_tensors().size(); ++j) {
        const nn::ParameterPlace tensor = some_tensors()[j];
        if (!tensor.is_matrix()) continue;
        powers_[j].push_back({tensor.rows, tensor.columns, rank,
                              derived_seed(3, static_cast<std::uint64_t>(part), j),
                              1 / static_cast<float>(kLowRankReplicas)});
      }
  }
  std::vector<float> run(const std::vector<std::vector<float>>& gradients,
                         std::span<const int> sites) {
    std::vector<float> mean(kLowRankCount);
    for (auto& [j, powers] : powers_) {
      const nn::ParameterPlace tensor = some_tensors()[j];
      std::vector<std::vector<float>> p, q;
      for (std::size_t r = 0; r < kLowRankReplicas; ++r)
        p.push_back(
            powers[r].project(std::span{gradients[r]}.subspan(tensor.first, tensor.count())));
      for (std::size_t r = 0; r < kLowRankReplicas; ++r)
        q.push_back(powers[r].answer(training::replayed_sum(p, sites)));
      for (std::size_t r = 0; r < kLowRankReplicas; ++r)
        std::ranges::copy(powers[r].decoded(training::replayed_sum(q, sites)),
                          mean.data() + tensor.first);
    }
    return mean;
  }
  [[nodiscard]] const std::vector<float>& residual(std::size_t tensor, std::size_t replica) const {
    return powers_.at(tensor)[replica].residual();
  }

private:
  std::map<std::size_t, std::vector<compress::PowerSgd>> powers_;
};

TEST(ReplayLowRank, HasTheBitsOfRanks) {
  const std::vector<int> sites{0, 0, 1};
  for (const int rank : {1, 2, 5})
    for (const bool through_sites : {false, true}) {
      SCOPED_TRACE(fmt::format("rank {}, sites {}", rank, through_sites));
      ReplayLowRank replay{rank, some_tensors(), sites, through_sites, 2, kLowRankCount};
      PowerOfRanks ranks{static_cast<std::size_t>(rank), 2};
      const std::span<const int> of_sums =
          through_sites ? std::span<const int>{sites} : std::span<const int>{};
      for (int iteration = 0; iteration < 6; ++iteration) {
        const auto gradients = shares_at(iteration);
        std::vector<std::span<const float>> views(gradients.begin(), gradients.end());
        const std::vector<float> found = replay.run(views).numbers;
        const std::vector<float> expected = ranks.run(gradients, of_sums);
        for (const std::size_t j : {0U, 2U}) {
          const nn::ParameterPlace tensor = some_tensors()[j];
          for (std::size_t i = 0; i < tensor.count(); ++i) {
            ASSERT_EQ(found[tensor.first + i], expected[tensor.first + i]) << iteration;
            for (std::size_t r = 0; r < kLowRankReplicas; ++r)
              ASSERT_EQ(replay.residual(r)[tensor.first + i], ranks.residual(j, r)[i]);
          }
        }
        for (std::size_t i = 192; i < 199; ++i)
          ASSERT_EQ(found[i], (gradients[0][i] + gradients[1][i]) + gradients[2][i])
              << "the vector";
      }
    }
}

TEST(ReplayLowRank, SumsInTheOrderOfSites) {
  const std::vector<std::vector<float>> sent{{1e8F}, {1}, {-1e8F}};
  EXPECT_EQ(training::replayed_sum(sent, {}).front(), 0);
  const std::vector<int> sites{0, 1, 0};
  EXPECT_EQ(training::replayed_sum(sent, sites).front(), 1) << "0 and 2 are one site";
}

}  // namespace
}  // namespace longhaul::testing

#include "training/parts/low_rank_method.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "compress/wire/dense.hpp"

namespace longhaul::training {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

/// A matrix of 12 x 8, a vector of 5 and one of 6 x 7, each from a multiple of 64 on.
std::vector<nn::ParameterPlace> some_tensors_of_a_part() {
  return {{"first", 0, 12, 8}, {"norm", 128, 5, 1}, {"second", 192, 6, 7}};
}
constexpr std::size_t kOfTensors = 256;

std::vector<float> numbers_in_tensors(std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers(kOfTensors);
  for (const nn::ParameterPlace& tensor : some_tensors_of_a_part())
    for (std::size_t i = 0; i < tensor.count(); ++i)
      numbers[tensor.first + i] = static_cast<float>(random.normal());
  return numbers;
}

/// Matrices of rank 2.
std::vector<float> of_rank_two(std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers = numbers_in_tensors(seed + 1);
  for (const nn::ParameterPlace& tensor : some_tensors_of_a_part()) {
    if (!tensor.is_matrix()) continue;
    std::vector<float> left(2 * tensor.rows), right(2 * tensor.columns);
    for (float& number : left) number = static_cast<float>(random.normal());
    for (float& number : right) number = static_cast<float>(random.normal());
    for (std::size_t i = 0; i < tensor.rows; ++i)
      for (std::size_t j = 0; j < tensor.columns; ++j)
        numbers[tensor.first + i * tensor.columns + j] =
            left[2 * i] * right[2 * j] + left[2 * i + 1] * right[2 * j + 1];
  }
  return numbers;
}

PartPlace place_of_tensors(int replicas) {
  PartPlace place;
  place.numbers = kOfTensors;
  place.replicas = replicas;
  place.tensors = some_tensors_of_a_part();
  return place;
}

/// Replicas of one part with SGD of rate 1: weights are what has been stepped with, negative.
class PowerReplicas {
public:
  PowerReplicas(int replicas, int rank) {
    StepSettings sgd;
    sgd.optimizer.rule = compress::OptimizerRule::sgd;
    sgd.learning_rate = 1;
    RivalSettings settings{.rival = Rival::powersgd};
    settings.rank = rank;
    for (int r = 0; r < replicas; ++r)
      methods.push_back(make_power_sgd(settings, place_of_tensors(replicas), sgd));
    weights.assign(to_size(replicas), std::vector<float>(kOfTensors));
  }

  /// With gradients that are shares of the mean; through sites of so many replicas, or directly.
  void play(int iteration, const std::vector<std::vector<float>>& gradients, std::size_t site = 0) {
    std::vector<std::vector<std::byte>> sent;
    for (std::size_t r = 0; r < methods.size(); ++r)
      sent.push_back(methods[r]->own_set(iteration, gradients[r]));
    first_bytes = sent.front().size();
    const auto of_first = exchanged(iteration, sent, site);
    sent.clear();
    for (const auto& method : methods) sent.push_back(method->answer(iteration, sets_of(of_first)));
    second_bytes = sent.front().size();
    const auto of_second = exchanged(iteration, sent, site);
    for (std::size_t r = 0; r < methods.size(); ++r) {
      methods[r]->merge(iteration, sets_of(of_second));
      methods[r]->step(iteration, weights[r]);
      EXPECT_EQ(weights[r], weights[0]) << "replica " << r << ", iteration " << iteration;
    }
  }

  std::vector<std::unique_ptr<PartMethod>> methods;
  std::vector<std::vector<float>> weights;
  std::size_t first_bytes = 0, second_bytes = 0;

private:
  using Sent = std::vector<std::vector<std::byte>>;
  static std::vector<SetPayload> sets_of(std::span<const std::vector<std::byte>> sent) {
    std::vector<SetPayload> sets;
    for (const auto& payload : sent) sets.push_back({"a member", payload});
    return sets;
  }
  [[nodiscard]] Sent exchanged(int iteration, const Sent& sent, std::size_t site) {
    if (site == 0) return sent;
    Sent of_sites;
    for (std::size_t first = 0; first < sent.size(); first += site)
      of_sites.push_back(methods[first]->site_set(
          iteration, sets_of(std::span{sent}.subspan(first, std::min(site, sent.size() - first)))));
    return of_sites;
  }
};

std::vector<float> sum_of_gradients(const std::vector<std::vector<float>>& all) {
  std::vector<float> sum(kOfTensors);
  for (const std::vector<float>& one : all)
    for (std::size_t i = 0; i < kOfTensors; ++i) sum[i] += one[i];
  return sum;
}

/// The first iteration projects on columns at random, the next ones on those that were found.
TEST(PowerSgdMethod, IsExactOnGradientsOfItsRank) {
  for (const std::size_t site : {0U, 2U}) {
    PowerReplicas replicas{3, 2};
    const std::vector<float> one = numbers_in_tensors(5), other = numbers_in_tensors(6);
    std::vector<float> rest = of_rank_two(8);  // the sum of the three is of rank 2
    for (std::size_t i = 0; i < kOfTensors; ++i) rest[i] -= one[i] + other[i];
    for (int iteration = 0; iteration < 3; ++iteration) {
      const std::vector<float> before = replicas.weights[0];
      replicas.play(iteration, {rest, one, other}, site);
      std::vector<float> moved = before;
      for (std::size_t i = 0; i < kOfTensors; ++i) moved[i] -= replicas.weights[0][i];
      EXPECT_THAT(moved, Pointwise(FloatNear(3e-5F), of_rank_two(8))) << iteration;
    }
  }
}

TEST(PowerSgdMethod, SendsTwoFactorsAndTheVectors) {
  PowerReplicas replicas{2, 3};
  replicas.play(0, {numbers_in_tensors(1), numbers_in_tensors(2)});
  const std::size_t p = 3 * (12 + 6), q = 3 * (8 + 7);
  EXPECT_EQ(replicas.first_bytes, compress::kPayloadHeader + 4 * (p + 5));
  EXPECT_EQ(replicas.second_bytes, compress::kPayloadHeader + 4 * q);
  EXPECT_EQ(replicas.methods[0]->largest_set(), replicas.first_bytes);
  const auto numbers = low_rank_numbers(3, some_tensors_of_a_part());
  EXPECT_EQ(numbers.first, p + 5);
  EXPECT_EQ(numbers.second, q);
  // Vectors are the mean; what no tensor has stays 0.
  const std::vector<float> sum = sum_of_gradients({numbers_in_tensors(1), numbers_in_tensors(2)});
  for (std::size_t i = 96; i < 192; ++i) EXPECT_EQ(replicas.weights[0][i], -sum[i]) << i;
}

TEST(PowerSgdMethod, LosesNothing) {
  for (const std::size_t site : {0U, 2U}) {
    PowerReplicas replicas{3, 1};
    std::vector<double> seen(kOfTensors);
    for (int iteration = 0; iteration < 20; ++iteration) {
      std::vector<std::vector<float>> gradients;
      for (std::uint64_t r = 0; r < 3; ++r)
        gradients.push_back(numbers_in_tensors(static_cast<std::uint64_t>(10 * iteration) + r));
      replicas.play(iteration, gradients, site);
      for (const auto& gradient : gradients)
        for (std::size_t i = 0; i < kOfTensors; ++i) seen[i] += static_cast<double>(gradient[i]);
    }
    for (std::size_t i = 0; i < kOfTensors; ++i) {
      double waits = 0, told = 0;
      for (const auto& method : replicas.methods) {
        waits += static_cast<double>(method->residual()[i]);
        told += method->gradients_seen()[i];
      }
      const double stepped = replicas.methods[0]->sums_seen()[i];
      EXPECT_NEAR(stepped + waits, seen[i], 1e-4) << i;
      EXPECT_NEAR(told, seen[i], 1e-9);
      EXPECT_NEAR(stepped, static_cast<double>(-replicas.weights[0][i]), 1e-3);
    }
    double left = 0;
    for (const float number : replicas.methods[0]->residual()) left += std::fabs(number);
    EXPECT_GT(left, 1) << "rank 1 leaves something";
  }
}

/// Q and what waits, so that the next step is of the same bits.
TEST(PowerSgdMethod, GoesOnFromACheckpoint) {
  PowerReplicas whole{2, 2}, again{2, 2};
  const auto gradients = [](int i) {
    return std::vector{numbers_in_tensors(static_cast<std::uint64_t>(i)),
                       numbers_in_tensors(static_cast<std::uint64_t>(50 + i))};
  };
  for (int i = 0; i < 3; ++i) whole.play(i, gradients(i));
  for (std::size_t r = 0; r < 2; ++r) {
    StateWriter writer;
    whole.methods[r]->save(writer);
    StateReader reader{writer.bytes()};
    again.methods[r]->load(reader);
    EXPECT_TRUE(reader.is_over());
  }
  again.weights = whole.weights;
  for (int i = 3; i < 6; ++i) {
    whole.play(i, gradients(i));
    again.play(i, gradients(i));
    EXPECT_EQ(again.weights[0], whole.weights[0]) << i;
  }
  StateWriter small;
  PowerReplicas{2, 1}.methods[0]->save(small);
  StateReader other{small.bytes()};
  EXPECT_THROW(again.methods[0]->load(other), Error) << "of another rank";
}

TEST(PowerSgdMethod, RefusesWhatCannotBe) {
  const auto why = [](int rank, int staleness) -> std::string {
    RivalSettings settings{.rival = Rival::powersgd};
    settings.rank = rank;
    PartPlace place = place_of_tensors(2);
    place.staleness = staleness;
    try {
      (void)make_power_sgd(settings, place, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(why(6, 0), "taken");
  EXPECT_THAT(why(0, 0), HasSubstr("rank 0"));
  EXPECT_THAT(why(7, 0), HasSubstr("above that of second (6 x 7). Give one up to 6"));
  EXPECT_THAT(why(2, 1), HasSubstr("staleness 1"));
  PowerReplicas replicas{2, 2};
  std::vector<float> bad = numbers_in_tensors(1);
  bad[3] = NAN;
  EXPECT_THROW((void)replicas.methods[0]->own_set(0, bad), compress::NotFinite);
  const std::vector<std::byte> longer =
      compress::encode_dense(numbers_in_tensors(2), compress::DenseFormat::f32);
  EXPECT_THROW((void)replicas.methods[0]->answer(0, std::vector<SetPayload>{{"rank 1", longer}}),
               Error);
}

}  // namespace
}  // namespace longhaul::training

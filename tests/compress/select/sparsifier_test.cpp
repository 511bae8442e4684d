#include "compress/select/sparsifier.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/kept_share.hpp"
#include "compress/kernels/cpu_level.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

using ::testing::ElementsAre;

Settings settings(Method method, double keep, int block) {
  return {.method = method, .keep = keep, .block = block};
}

SparseSet take(const Settings& wanted, std::vector<float> sum) {
  Sparsifier sparsifier{wanted, static_cast<std::int64_t>(sum.size())};
  return sparsifier.take(sum);
}

TEST(Sparsifier, KeepsTheBlocksOfTheIssue) {
  std::vector<float> sum{3, -1, 0.5, 0.5, -2, 2, 0, 1};
  Sparsifier sparsifier{settings(Method::block, 0.5, 2), 8};
  const SparseSet set = sparsifier.take(sum);
  EXPECT_THAT(set.blocks, ElementsAre(0, 2));
  EXPECT_THAT(set.values, ElementsAre(3, -1, -2, 2));
  EXPECT_THAT(sum, ElementsAre(0, 0, 0.5, 0.5, 0, 0, 0, 1));
  EXPECT_EQ(sparsifier.last_threshold(), 2);
}

TEST(Sparsifier, FeedsBackWhatItDidNotSend) {
  const std::vector<float> gradient{1, 0.6F};
  std::vector<float> residual(2);
  Sparsifier sparsifier{settings(Method::topk, 0.5, 1), 2};
  std::vector<std::pair<std::uint32_t, float>> sent;
  for (int i = 0; i < 4; ++i) {
    const SparseSet set = sparsifier.take(gradient, residual);
    ASSERT_EQ(set.blocks.size(), 1U);
    sent.emplace_back(set.blocks[0], set.values[0]);
  }
  const std::vector<std::pair<std::uint32_t, float>> wanted{{0, 1}, {1, 1.2F}, {0, 2}, {1, 1.2F}};
  EXPECT_EQ(sent, wanted);
}

/// What it remembers stays; a threshold is found again by the next choice, which is exact.
TEST(Sparsifier, KeepsAnotherShareFromNowOn) {
  std::vector<float> gradient(200);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = static_cast<float>((i * 73) % 200 + 1);
  for (const Method method : {Method::topk, Method::threshold}) {
    Sparsifier sparsifier{settings(method, 0.1, 1), 200};
    EXPECT_EQ(sparsifier.take_without_feedback(gradient).blocks.size(), 20U);
    const float before = sparsifier.state().threshold;
    sparsifier.set_keep(0.1);
    EXPECT_EQ(sparsifier.state().threshold, before) << "the same is no change";
    sparsifier.set_keep(0.25);
    const SparseSet set = sparsifier.take_without_feedback(gradient);
    EXPECT_EQ(set.blocks.size(), 50U);
    EXPECT_EQ(*std::ranges::min_element(set.values), 151) << "exactly the largest";
    EXPECT_EQ(sparsifier.state().calls, 2U);
  }
}

TEST(Sparsifier, GivesTiesToTheLowestBlock) {
  const std::vector<float> equal(64, 1);
  EXPECT_THAT(take(settings(Method::block, 0.5, 16), equal).blocks, ElementsAre(0, 1));
  EXPECT_THAT(take(settings(Method::topk, 0.05, 1), equal).blocks, ElementsAre(0, 1, 2));
  const std::vector<float> nothing(64);
  EXPECT_THAT(take(settings(Method::block, 0.5, 16), nothing).blocks, ElementsAre(0, 1));
}

TEST(Sparsifier, ShortLastBlockCountsAsOneByItsMean) {
  std::vector<float> sum(18, 1);
  sum[17] = 2;  // mean 1.5 of two
  const SparseSet set = take(settings(Method::block, 0.5, 16), sum);
  EXPECT_THAT(set.blocks, ElementsAre(1));
  EXPECT_THAT(set.values, ElementsAre(1, 2));
}

/// In double precision, by sorting all blocks.
std::vector<std::uint32_t> oracle(const std::vector<float>& numbers, int block, std::size_t wanted,
                                  std::vector<double>& means) {
  const auto width = static_cast<std::size_t>(block);
  means.clear();
  for (std::size_t begin = 0; begin < numbers.size(); begin += width) {
    const std::size_t end = std::min(begin + width, numbers.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += std::fabs(static_cast<double>(numbers[i]));
    means.push_back(sum / static_cast<double>(end - begin));
  }
  std::vector<std::uint32_t> order(means.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return means[a] > means[b]; });
  order.resize(wanted);
  std::ranges::sort(order);
  return order;
}

TEST(Sparsifier, AgreesWithASelectionInDoublePrecision) {
  for (const int block : {1, 2, 4, 8, 16})
    for (const double keep : {0.001, 0.01, 0.3, 0.99})
      for (const std::size_t count : {1U, 15U, 16U, 17U, 1000U, 9001U}) {
        const std::vector<float> numbers = whole_numbers(count, count, 30);  // many ties
        const SparseSet set = take(settings(Method::block, keep, block), numbers);
        const auto wanted =
            static_cast<std::size_t>(blocks_to_keep(static_cast<std::int64_t>(count), keep, block));
        std::vector<double> means;
        EXPECT_EQ(set.blocks, oracle(numbers, block, wanted, means))
            << count << " numbers, " << keep << ", blocks of " << block;
      }
}

/// Large enough that the limit comes from a sample; the second is as unlike its sample as can be.
TEST(Sparsifier, IsExactWhereASampleLeadsAndWhereItMisleads) {
  constexpr std::size_t kCount = 140'000;
  for (const bool misleading : {false, true}) {
    std::vector<float> numbers = gradient_of(kCount, 5);
    if (misleading)
      for (std::size_t i = 0; i < kCount; ++i) numbers[i] = i < 100 ? 1 : 1e-3F * numbers[i];
    for (const double keep : {0.0001, 0.01}) {
      const SparseSet set = take(settings(Method::topk, keep, 1), numbers);
      std::vector<double> means;
      const auto wanted = static_cast<std::size_t>(blocks_to_keep(kCount, keep, 1));
      EXPECT_EQ(set.blocks, oracle(numbers, 1, wanted, means)) << keep;
    }
  }
}

TEST(Sparsifier, NothingGetsLost) {
  for (const Method method : every<Method>())
    for (const ValueFormat values : every<ValueFormat>()) {
      const int block = method == Method::topk ? 1 : 4;
      Settings wanted = settings(method, 0.05, block);
      wanted.values = values;
      constexpr std::size_t kCount = 1003;
      Sparsifier sparsifier{wanted, kCount};
      std::vector<float> residual(kCount);
      std::vector<double> sent(kCount), all(kCount);
      for (std::uint64_t step = 0; step < 20; ++step) {
        const std::vector<float> gradient = whole_numbers(kCount, step);
        const SparseSet set = sparsifier.take(gradient, residual);
        each_block(set, [&](std::size_t place, std::size_t at, std::size_t size) {
          for (std::size_t i = 0; i < size; ++i) sent[place + i] += set.values[at + i];
        });
        for (std::size_t i = 0; i < kCount; ++i) all[i] += gradient[i];
      }
      const double tolerance = values == ValueFormat::f32 ? 0 : 1e-5;
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_NEAR(sent[i] + residual[i], all[i], tolerance * (1 + std::fabs(all[i])) * 20)
            << to_string(method) << " " << to_string(values) << " " << i;
    }
}

TEST(Sparsifier, MoreKeepNeverSendsLessMass) {
  const std::vector<float> numbers = gradient_of(5000, 3);
  for (const int block : {1, 4, 16}) {
    double before = 0;
    for (const double keep : {0.001, 0.01, 0.02, 0.1, 0.5, 1.0}) {
      double mass = 0;
      for (const float value : take(settings(Method::block, keep, block), numbers).values)
        mass += std::fabs(value);
      EXPECT_GE(mass, before);
      before = mass;
    }
  }
}

TEST(Sparsifier, EverythingIsKeptInPlaceOrder) {
  const std::vector<float> numbers = gradient_of(35, 3);
  for (const Method method : {Method::block, Method::randomk}) {
    const SparseSet set = take(settings(method, 1, 16), numbers);
    EXPECT_EQ(set, whole_set(numbers, 16)) << to_string(method);
  }
}

TEST(Threshold, GrowsByAHundredthOfTheFirstAndShrinksByAHundredth) {
  const SparsifierState one{.threshold = 1, .first_threshold = 1};
  EXPECT_EQ(adapted_threshold(one, 5, 4), 1.01F);
  EXPECT_EQ(adapted_threshold(one, 3, 4), 0.99F);
  EXPECT_EQ(adapted_threshold(one, 4, 4), 1);
  const SparsifierState grown{.threshold = 2, .first_threshold = 1};
  EXPECT_EQ(adapted_threshold(grown, 5, 4), 2.01F);
}

TEST(Threshold, DropsTheSurplusByMagnitudeAndNotByPosition) {
  std::vector<float> sum{1, 2, 3, 4, 5, 6, 7, 8};
  Sparsifier sparsifier{
      settings(Method::threshold, 0.25, 1), 8, {.threshold = 0.5, .first_threshold = 0.5}};
  EXPECT_THAT(sparsifier.take(sum).blocks, ElementsAre(6, 7));
  EXPECT_EQ(sparsifier.last_threshold(), 0.5);
  EXPECT_FLOAT_EQ(sparsifier.state().threshold, 0.505F);
  EXPECT_THAT(sum, ElementsAre(1, 2, 3, 4, 5, 6, 0, 0));
}

TEST(Threshold, SendsOnlyWhatIsAbove) {
  std::vector<float> sum{1, 2, 3, 4};
  Sparsifier sparsifier{
      settings(Method::threshold, 0.75, 1), 4, {.threshold = 3, .first_threshold = 1}};
  EXPECT_THAT(sparsifier.take(sum).blocks, ElementsAre(3));
  EXPECT_FLOAT_EQ(sparsifier.state().threshold, 2.97F);
}

TEST(Threshold, BeginsWithAnExactSelectionAndFollowsTheGradients) {
  constexpr std::size_t kCount = 50'000;
  Sparsifier sparsifier{settings(Method::threshold, 0.01, 16), kCount};
  const auto wanted = static_cast<std::size_t>(sparsifier.blocks_wanted());
  std::vector<float> residual(kCount);
  std::size_t last = 0;
  for (std::uint64_t step = 0; step < 40; ++step) {
    last = sparsifier.take(gradient_of(kCount, step), residual).blocks.size();
    EXPECT_LE(last, wanted);
    EXPECT_TRUE(step > 0 || last == wanted) << last;
  }
  EXPECT_GT(last, wanted / 4);
}

TEST(Threshold, OfZerosIsChosenAnewLater) {
  Sparsifier sparsifier{settings(Method::threshold, 0.25, 1), 4};
  std::vector<float> nothing(4), sum{1, 4, 2, 3};
  static_cast<void>(sparsifier.take(nothing));
  EXPECT_EQ(sparsifier.state().threshold, 0);
  EXPECT_THAT(sparsifier.take(sum).blocks, ElementsAre(1));
  EXPECT_GT(sparsifier.state().threshold, 3);
}

TEST(RandomK, DrawsOtherBlocksInEachCallAndTheSameFromASeed) {
  const std::vector<float> numbers = gradient_of(1000, 1);
  Sparsifier one{settings(Method::randomk, 0.1, 1), 1000};
  Sparsifier two = one;
  const SparseSet first = one.take_without_feedback(numbers);
  const SparseSet second = one.take_without_feedback(numbers);
  EXPECT_EQ(first.blocks.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(first.blocks));
  EXPECT_NE(first.blocks, second.blocks);
  EXPECT_EQ(two.take_without_feedback(numbers), first);
  const SparseSet most = take(settings(Method::randomk, 0.9, 1), numbers);
  EXPECT_EQ(most.blocks.size(), 900U);
  EXPECT_EQ(std::ranges::adjacent_find(most.blocks), most.blocks.end());
}

TEST(Sparsifier, GivesEqualBitsAtEveryLevel) {
  for (const int block : {1, 4, 8, 16}) {
    std::vector<SparseSet> sets;
    std::vector<std::vector<float>> residuals;
    for (const CpuLevel level : every<CpuLevel>()) {
      const LimitedCpuLevel limited{level};
      Sparsifier sparsifier{settings(Method::threshold, 0.02, block), 10'007};
      std::vector<float> residual = gradient_of(10'007, 9);
      for (std::uint64_t step = 0; step < 5; ++step)
        sets.push_back(sparsifier.take(gradient_of(10'007, step), residual));
      residuals.push_back(residual);
      EXPECT_EQ(residuals.front(), residual);
      EXPECT_EQ(sets[sets.size() - 1], sets[4]);
    }
  }
}

TEST(Sparsifier, NamesTheFirstNumberThatIsNotFinite) {
  for (const Method method : every<Method>()) {
    Sparsifier sparsifier{settings(method, 0.1, 1), 5000};
    std::vector<float> sum(5000, 1);
    sum[4321] = std::numeric_limits<float>::infinity();
    sum[1234] = std::nanf("");
    try {
      static_cast<void>(sparsifier.take(sum));
      ADD_FAILURE() << to_string(method);
    } catch (const NotFinite& error) {
      EXPECT_EQ(error.index(), 1234U) << to_string(method);
    }
  }
}

TEST(Sparsifier, TakesSumsOfABlockThatOverflow) {
  std::vector<float> sum(64, 1);
  std::fill_n(sum.begin() + 16, 16, std::numeric_limits<float>::max());
  EXPECT_THAT(take(settings(Method::block, 0.25, 16), sum).blocks, ElementsAre(1));
}

}  // namespace
}  // namespace longhaul::compress::test

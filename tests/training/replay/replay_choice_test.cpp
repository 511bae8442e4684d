#include "training/replay/replay_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/kept_share.hpp"
#include "compress/kernels/scan.hpp"
#include "compress/select/sparsifier.hpp"
#include "training/replay/compressed_parts.hpp"

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;
using training::ReplayChooser;
using training::ReplaySet;

/// Seven gradients one after the other, in parts of which some end in a short block: sets and
/// residuals.
TEST(ReplayChooser, ChoosesAsRanksDo) {
  for (const GradientCompression& compress : every_sparse_choice())
    for (const std::size_t count : {1U, 15U, 64U, 517U, 2000U})
      for (const double share : {0.003, 0.1, 0.29, 0.7, 1.0}) {
        SCOPED_TRACE(fmt::format("{}, {} of {}", name_of(compress), share, count));
        ReplayChooser mine{compress, count, share, 3};
        compress::Sparsifier theirs{settings_of(compress, share, 3),
                                    static_cast<std::int64_t>(count)};
        std::vector<float> left(count), residual(count);
        for (std::uint64_t call = 1; call <= 7; ++call) {
          const std::vector<float> gradient = numbers_like_gradients(count, 10 * count + call);
          for (std::size_t i = 0; i < count; ++i) left[i] += gradient[i];
          const ReplaySet chosen = mine.take(left);
          ASSERT_EQ(chosen, spread_out(theirs.take(gradient, residual))) << "call " << call;
          ASSERT_EQ(left, residual) << "call " << call;
          if (compress.method == CompressMethod::threshold) {
            ASSERT_EQ(mine.threshold(), theirs.state().threshold);
          }
        }
      }
}

TEST(ReplayChooser, ChoosesWithoutFeedbackAsRanksDo) {
  for (const GradientCompression& compress : every_sparse_choice()) {
    constexpr std::size_t kCount = 777;
    ReplayChooser mine{compress, kCount, 0.1, 1};
    compress::Sparsifier theirs{settings_of(compress, 0.1, 1), kCount};
    for (std::uint64_t call = 1; call <= 5; ++call) {
      std::vector<float> gradient = numbers_like_gradients(kCount, call);
      const ReplaySet expected = spread_out(theirs.take_without_feedback(gradient));
      ASSERT_EQ(mine.take(gradient), expected) << name_of(compress) << ", call " << call;
    }
  }
}

/// Where ranks judge by a sample first.
TEST(ReplayChooser, ChoosesFromALongVectorAsRanksDo) {
  constexpr std::size_t kCount = 300'007;
  for (const CompressMethod method : {CompressMethod::topk, CompressMethod::threshold}) {
    GradientCompression compress;
    compress.method = method;
    compress.block = 1;
    ReplayChooser mine{compress, kCount, 0.01, 1};
    compress::Sparsifier theirs{settings_of(compress, 0.01, 1), kCount};
    std::vector<float> residual(kCount), left(kCount);
    for (std::uint64_t call = 1; call <= 3; ++call) {
      const std::vector<float> gradient = numbers_like_gradients(kCount, call);
      for (std::size_t i = 0; i < kCount; ++i) left[i] += gradient[i];
      EXPECT_EQ(mine.take(left), spread_out(theirs.take(gradient, residual))) << call;
    }
  }
}

TEST(ReplayChooser, KeepsAsManyBlocksAsAllModulesDo) {
  for (const std::size_t count : {0U, 1U, 16U, 100U, 12345U})
    for (const double share : {1e-6, 0.01, 0.29, 1.0 / 3, 0.5, 1.0, 2.0})
      for (const int block : {1, 2, 4, 8, 16})
        EXPECT_EQ(training::replayed_blocks(count, share, block),
                  static_cast<std::size_t>(
                      blocks_to_keep(static_cast<std::int64_t>(count), share, block)))
            << count << ", " << share << ", " << block;
}

TEST(ReplayChooser, LeavesOutWhatEqualsTheThreshold) {
  GradientCompression compress;
  compress.method = CompressMethod::threshold;
  compress.block = 1;
  ReplayChooser mine{compress, 4, 0.5, 1};
  compress::Sparsifier theirs{settings_of(compress, 0.5, 1), 4};
  std::vector<float> first{4, -3, 2, 1};
  EXPECT_EQ(mine.take(first),
            spread_out(theirs.take_without_feedback(std::vector{4.F, -3.F, 2.F, 1.F})));
  std::vector<float> second(4, -mine.threshold());
  second[2] = 3;
  const ReplaySet expected = spread_out(theirs.take_without_feedback(second));
  EXPECT_THAT(expected.has, ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(mine.take(second), expected);
}

/// The sum in another order has other bits.
TEST(ReplayChooser, AddsMagnitudesAsATreeOfHalves) {
  const std::vector<float> numbers{1, 0x1p-24F, 0x1p-24F, -0x1p-24F};
  EXPECT_EQ(training::replayed_score(numbers, 4), 1 + 0x1p-23F);
  EXPECT_EQ(training::replayed_score(std::vector<float>{-3}, 2), 6) << "a short block";
  const std::vector<float> many = numbers_like_gradients(4096, 4);
  for (const int block : {1, 2, 4, 8, 16})
    for (std::size_t i = 0; i + 16 <= many.size(); i += 16)
      for (std::size_t size = 1; size <= static_cast<std::size_t>(block); ++size)
        ASSERT_EQ(training::replayed_score(std::span{many}.subspan(i, size), block),
                  compress::short_block_score(many.data() + i, size, block));
}

TEST(ReplayChooser, KeepsTheBlocksOfTheIssue) {
  GradientCompression compress;
  compress.block = 2;
  ReplayChooser chooser{compress, 8, 0.5, 1};
  std::vector<float> sum{3, -1, 0.5F, 0.5F, -2, 2, 0, 1};
  const ReplaySet set = chooser.take(sum);
  EXPECT_THAT(set.has, ElementsAre(1, 1, 0, 0, 1, 1, 0, 0));
  EXPECT_THAT(set.kept(), ElementsAre(3, -1, -2, 2));
  EXPECT_THAT(sum, ElementsAre(0, 0, 0.5F, 0.5F, 0, 0, 0, 1));
}

TEST(ReplayChooser, FeedsBackAsTheIssueSays) {
  GradientCompression compress;
  compress.method = CompressMethod::topk;
  ReplayChooser chooser{compress, 2, 0.5, 1};
  std::vector<float> sum(2);
  const std::vector<std::pair<std::size_t, float>> expected{{0, 1}, {1, 1.2F}, {0, 2}, {1, 1.2F}};
  for (const auto& [place, value] : expected) {
    sum[0] += 1;
    sum[1] += 0.6F;
    const ReplaySet set = chooser.take(sum);
    EXPECT_EQ(set.has[place], 1);
    EXPECT_EQ(set.has[1 - place], 0);
    EXPECT_FLOAT_EQ(set.numbers[place], value);
  }
}

TEST(ReplayChooser, SendsAllOfDenseMethodsRounded) {
  GradientCompression compress;
  std::vector<float> numbers = numbers_like_gradients(300, 8);
  numbers.push_back(1e6F);
  for (const CompressMethod method : {CompressMethod::none, CompressMethod::fp16}) {
    compress.method = method;
    ReplayChooser chooser{compress, numbers.size(), 0.01, 1};
    std::vector<float> left = numbers;
    const ReplaySet set = chooser.take(left);
    EXPECT_EQ(set.kept().size(), numbers.size());
    EXPECT_EQ(set.numbers.back(), method == CompressMethod::none ? 1e6F : 65504);
  }
  compress.method = CompressMethod::int8;
  ReplayChooser chooser{compress, numbers.size(), 0.01, 1};
  std::vector<float> left = numbers, expected = numbers;
  training::round_to_steps(expected);
  EXPECT_EQ(chooser.take(left).numbers, expected);
  EXPECT_NE(expected, numbers);
}

}  // namespace
}  // namespace longhaul::testing

#include "compress/rivals/decoupled_momentum.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

std::vector<TensorChunk> vector_of(std::size_t count) {
  return chunks_of({}, count, kDctChunk, kDctChunk);
}

TEST(CosineTransform, IsOrthonormal) {
  for (const auto& [rows, columns] :
       {std::pair<std::size_t, std::size_t>{1, 64}, {64, 64}, {12, 43}}) {
    const std::vector<float> numbers = gradient_of(rows * columns, 1);
    std::vector<float> coefficients(numbers.size()), again(numbers.size());
    cosine_transform(numbers, rows, columns, coefficients);
    inverse_cosine_transform(coefficients, rows, columns, again);
    double before = 0, after = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_NEAR(again[i], numbers[i], 1e-4);
      before += std::pow(numbers[i], 2);
      after += std::pow(coefficients[i], 2);
    }
    EXPECT_NEAR(after / before, 1, 1e-5);
  }
  std::vector<float> coefficients(kDctChunk);
  cosine_transform(std::vector<float>(kDctChunk, 1), 1, kDctChunk, coefficients);
  EXPECT_NEAR(coefficients[0], 8, 1e-5);
  EXPECT_NEAR(coefficients[1], 0, 1e-5);
}

/// Cosines of two are 1, 1 and 1, -1 over the root of 2.
TEST(CosineTransform, GoesBothWaysThroughAMatrix) {
  std::vector<float> coefficients(4);
  cosine_transform(std::vector<float>{1, 2, 3, 8}, 2, 2, coefficients);
  const float wanted[] = {7, -3, -4, 2};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(coefficients[i], wanted[i], 1e-6) << i;
}

TEST(DecoupledMomentum, SendsOfAMatrixWhatItsChunksHave) {
  // A vector of 3, a zero between, and a matrix of 2 x 2 (as above).
  const std::vector<TensorShape> tensors{{0, 3, 1}, {4, 2, 2}};
  DecoupledMomentum demo{0.5, 0.5F, chunks_of(tensors, 8, kDctChunk, kDctChunk), 8};
  const SparseSet sent = demo.take(std::vector<float>{1, 1, 1, 0, 1, 2, 3, 8});
  EXPECT_EQ(sent.count, 7);
  EXPECT_THAT(sent.blocks, ::testing::ElementsAre(0, 3, 5)) << "floor(3 / 2) and 4 / 2";
  EXPECT_NEAR(sent.values[0], std::sqrt(3), 1e-6);
  EXPECT_NEAR(sent.values[1], 7, 1e-6);
  EXPECT_NEAR(sent.values[2], -4, 1e-6);
  const float made[] = {1, 1, 1, 0, 1.5, 1.5, 5.5, 5.5};
  const float left[] = {0, 0, 0, 0, -0.5, 0.5, -2.5, 2.5};
  const std::vector<float> numbers = demo.numbers_of(sent);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(numbers[i], made[i], 1e-5) << i;
    EXPECT_NEAR(demo.momenta()[i], left[i], 1e-5) << i;
  }
}

TEST(TensorChunks, AreOfOneTensor) {
  EXPECT_EQ(largest_divisor(172, 64), 43U);
  EXPECT_EQ(largest_divisor(67, 64), 1U);
  EXPECT_EQ(largest_divisor(48, 64), 48U);
  const std::vector<TensorShape> tensors{{0, 6, 4}, {24, 10, 1}};
  const std::vector<TensorChunk> chunks = chunks_of(tensors, 34, 3, 5);
  ASSERT_EQ(chunks.size(), 2 * 2 + 2U) << "of 3 x 2, and of 5";
  EXPECT_EQ(chunks[1].first, 2U);
  EXPECT_EQ(chunks[2].first, 12U);
  EXPECT_EQ(chunks[2].place(3), 12 + 4 + 1U) << "second row, second column";
  EXPECT_EQ(chunks[5].first, 29U);
  EXPECT_EQ(chunks[5].place(4), 33U);
  std::vector<int> times(34);
  for (const TensorChunk& chunk : chunks)
    for (std::size_t i = 0; i < chunk.size(); ++i) ++times[chunk.place(i)];
  EXPECT_THAT(times, ::testing::Each(1));
  EXPECT_EQ(kept_of_chunks(chunks, 0.25), 4 * 1 + 2 * 1);
  EXPECT_EQ(kept_of_chunks(chunks, 1), 34);
  EXPECT_THAT(chunks_of({}, 0, 3, 5), ::testing::IsEmpty()) << "a part without layers";
}

TEST(DecoupledMomentum, ThatKeepsAllSendsItsGradient) {
  const std::vector<float> gradient = gradient_of(100, 2);
  DecoupledMomentum demo{1, 0.9F, vector_of(100), 100};
  const std::vector<float> sent = demo.numbers_of(demo.take(gradient));
  for (std::size_t i = 0; i < 100; ++i) EXPECT_NEAR(sent[i], gradient[i], 1e-4);
  for (const float left : demo.momenta()) EXPECT_NEAR(left, 0, 1e-4);
}

TEST(DecoupledMomentum, KeepsWhatItDoesNotSend) {
  const std::vector<float> gradient = gradient_of(kDctChunk, 3);
  DecoupledMomentum demo{4.0 / 64, 0.9F, vector_of(kDctChunk), kDctChunk};
  const SparseSet coefficients = demo.take(gradient);
  EXPECT_EQ(coefficients.blocks.size(), 4U);
  const std::vector<float> sent = demo.numbers_of(coefficients);
  for (std::size_t i = 0; i < kDctChunk; ++i)
    EXPECT_NEAR(sent[i] + demo.momenta()[i], gradient[i], 1e-4);
}

TEST(DemoStep, FollowsSigns) {
  std::vector<float> weights{1, 1, 1};
  demo_step(weights, std::vector<float>{5, -0.1F, 0}, 0.5F);
  EXPECT_THAT(weights, ::testing::ElementsAre(0.5, 1.5, 1));
  EXPECT_THROW((DecoupledMomentum{0, 0.9F, vector_of(10), 10}), Error);
  EXPECT_THROW((DecoupledMomentum{1.5, 0.9F, vector_of(10), 10}), Error);
}

}  // namespace
}  // namespace longhaul::compress::test

#include "nn/cpu/cpu_tensor_ops.hpp"

#include <cmath>

#include "base/bf16.hpp"
#include "chunk_suite.hpp"
#include "nn/counter_random.hpp"
#include "tensor_ops_suite.hpp"

namespace longhaul::nn {

INSTANTIATE_TEST_SUITE_P(Cpu, TensorOpsSuite,
                         ::testing::Values(TensorOpsUnderTest{"cpu", make_cpu_math}),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Cpu, ChunkSuite,
                         ::testing::Values(TensorOpsUnderTest{"cpu", make_cpu_math}),
                         [](const auto& test) { return test.param.name; });

namespace {

TEST(NumberTypes, Bf16KeepsInfinityAndWhatIsNoNumber) {
  EXPECT_EQ(from_bf16(to_bf16(INFINITY)), INFINITY);
  EXPECT_EQ(from_bf16(to_bf16(3.4e38F)), INFINITY);  // past the largest number
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::nanf("")))));
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float number = from_bf16(static_cast<std::uint16_t>(bits));
    if (number == number) {
      EXPECT_EQ(to_bf16(number), bits);
    }
  }
}

TEST(CounterRandom, IsUniformAndUncorrelated) {
  constexpr std::size_t kCount = 1'000'000;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    double sum = 0, squares = 0, neighbours = 0, seeds = 0;
    std::vector<int> cells(64);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double number = counter_random(seed, i);
      ASSERT_LT(std::abs(number), 1);
      sum += number;
      squares += number * number;
      neighbours += number * counter_random(seed, i + 1);
      seeds += number * counter_random(seed + 1, i);
      ++cells[static_cast<std::size_t>((number + 1) * 32)];
    }
    // Five standard errors of a uniform number's mean, variance and products.
    EXPECT_NEAR(sum / kCount, 0, 5 * 0.577e-3);
    EXPECT_NEAR(squares / kCount, 1.0 / 3, 5 * 0.298e-3);
    EXPECT_NEAR(neighbours / kCount, 0, 5 * 0.333e-3);
    EXPECT_NEAR(seeds / kCount, 0, 5 * 0.333e-3);
    double chi_squared = 0;  // 63 degrees of freedom: 63 +- 11.2
    for (const int cell : cells) chi_squared += std::pow(cell - kCount / 64.0, 2) / (kCount / 64.0);
    EXPECT_LT(chi_squared, 63 + 5 * 11.3);
  }
}

}  // namespace

}  // namespace longhaul::nn

#include "compress/wire/values.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

using ::testing::Each;

TEST(Values, AreRoundedOnce) {
  for (const ValueFormat format : every<ValueFormat>())
    for (const std::size_t count : {0U, 1U, 127U, 128U, 129U, 1000U}) {
      std::vector<float> once = gradient_of(count, count + 5);
      round_values(once, format);
      std::vector<float> twice = once;
      round_values(twice, format);
      EXPECT_EQ(once, twice) << to_string(format) << " " << count;
      std::vector<std::byte> bytes;
      write_values(once, format, bytes);
      EXPECT_EQ(bytes.size(), bytes_of_values(count, format));
      EXPECT_EQ(read_values(bytes, count, format), once);
    }
}

TEST(Values, OfInt8AreWithinHalfAStepOfTheLargest) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> numbers = gradient_of(kScaleGroup, seed);
    std::vector<float> rounded = numbers;
    round_values(rounded, ValueFormat::int8);
    float largest = 0;
    for (const float number : numbers) largest = std::max(largest, std::fabs(number));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_LE(std::fabs(numbers[i] - rounded[i]), largest / 254 * 1.001F);
  }
}

TEST(Values, TooSmallForAScaleStayBehind) {
  std::vector<float> small(10, 1e-35F);
  round_values(small, ValueFormat::int8);
  EXPECT_THAT(small, Each(0));
}

TEST(Values, StayFiniteAtTheEndOfTheirRange) {
  const float largest = std::numeric_limits<float>::max();
  for (const ValueFormat format : every<ValueFormat>()) {
    std::vector<float> values{largest, -largest, 3.4e38F, -3.4e38F, 3.395e38F, 1};
    const std::vector<float> before = values;
    round_values(values, format);
    std::vector<std::byte> bytes;
    write_values(values, format, bytes);
    EXPECT_EQ(read_values(bytes, values.size(), format), values) << to_string(format);
    for (std::size_t i = 0; i < 5; ++i) {
      ASSERT_TRUE(std::isfinite(values[i])) << to_string(format);
      EXPECT_NEAR(values[i] / before[i], 1, 0.01) << to_string(format);
    }
  }
}

TEST(Values, OfBf16KeepEightBits) {
  std::vector<float> numbers{1 + 1.0F / 256, 1 + 3.0F / 256, -2.5F};
  round_values(numbers, ValueFormat::bf16);
  EXPECT_EQ(numbers, (std::vector<float>{1, 1 + 1.0F / 64, -2.5F}));
}

}  // namespace
}  // namespace longhaul::compress::test

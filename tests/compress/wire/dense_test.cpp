#include "compress/wire/dense.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

using ::testing::HasSubstr;

constexpr Expected kDenseFrom{.source = "rank 3, part 2, iteration 10"};

float as_half(float number) {
  std::vector<float> one{number};
  round_dense(one, DenseFormat::fp16);
  return one.front();
}

TEST(DenseSets, RoundToTheNearestHalf) {
  EXPECT_EQ(as_half(1 + 0x1p-11F), 1.0F) << "half way: to the even one";
  EXPECT_EQ(as_half(1 + 0x1.8p-10F), 1 + 0x1p-9F);
  EXPECT_EQ(as_half(0x1p-24F), 0x1p-24F) << "the least of all";
  EXPECT_EQ(as_half(0x1p-25F), 0.0F);
  EXPECT_EQ(as_half(-70'000), -65'504.0F) << "the largest that is finite";
}

/// The compiler's own type is the oracle.
TEST(DenseSets, RoundAsTheCompilerDoes) {
  Random random{7};
  int checked = 0;
  while (checked < 200'000) {
    const auto number = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    if (!std::isfinite(number) || std::fabs(number) >= 65'520) continue;
    ++checked;
    const auto right = static_cast<float>(static_cast<_Float16>(number));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(as_half(number)), std::bit_cast<std::uint32_t>(right))
        << number;
  }
}

TEST(DenseSets, AreReadAsTheyWereRounded) {
  for (const DenseFormat format : every<DenseFormat>())
    for (const std::size_t count : {0U, 1U, 129U, 1000U}) {
      std::vector<float> numbers = gradient_of(count, count + 1);
      const std::vector<std::byte> payload = encode_dense(numbers, format);
      round_dense(numbers, format);
      EXPECT_EQ(decode_dense(payload, kDenseFrom), numbers) << to_string(format) << " " << count;
    }
  EXPECT_EQ(encode_dense(std::vector<float>(1000), DenseFormat::fp16).size(), 2012U);
}

/// Every half, as the compiler reads it.
TEST(DenseSets, ReadEveryHalf) {
  std::vector<std::byte> payload = encode_dense(std::vector<float>(1), DenseFormat::fp16);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    std::memcpy(payload.data() + kPayloadHeader, &half, sizeof half);
    const auto right = static_cast<float>(std::bit_cast<_Float16>(half));
    if (std::isfinite(right))
      ASSERT_EQ(decode_dense(payload, kDenseFrom), std::vector<float>{right}) << bits;
    else
      ASSERT_THROW((void)decode_dense(payload, kDenseFrom), Error) << bits;
  }
}

TEST(DenseSets, OfAStrangerAreRefused) {
  const auto refusal = [](std::vector<std::byte> payload, std::int64_t count = -1) {
    try {
      (void)decode_dense(payload, {.source = kDenseFrom.source, .count = count});
      return std::string{};
    } catch (const Error& error) {
      return std::string{error.what()};
    }
  };
  const std::vector<std::byte> right = encode_dense(std::vector<float>(10), DenseFormat::f32);
  std::vector<std::byte> other = right;
  other.pop_back();
  EXPECT_THAT(refusal(other), HasSubstr("rank 3, part 2, iteration 10: a payload of 51 bytes"));
  EXPECT_THAT(refusal({right.begin(), right.begin() + 5}), HasSubstr("ends in its first words"));
  EXPECT_THAT(refusal(right, 11), HasSubstr("10 numbers instead of 11"));
  other = right;
  other[1] = std::byte{'S'};
  EXPECT_THAT(refusal(other), HasSubstr("does not begin with LD"));
  other = right;
  other[2] = std::byte{9};
  EXPECT_THAT(refusal(other), HasSubstr("no format 9"));
  other = right;
  other[15] = std::byte{0x7f};
  other[14] = std::byte{0xc0};
  EXPECT_THAT(refusal(other), HasSubstr("number 0 is not finite"));
}

}  // namespace
}  // namespace longhaul::compress::test

#include "compress/rivals/bit_payloads.hpp"

#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "compress/rivals/outer_steps.hpp"

namespace longhaul::compress {
namespace {

using ::testing::HasSubstr;

std::vector<float> normal_numbers(std::size_t count, std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.normal());
  return numbers;
}

/// A set of two magnitudes whose gaps take one, two and three bytes.
SparseSet far_apart() {
  SparseSet set{40'000, 1, {0, 3, 127, 256, 400, 20'000, 39'999}, {2, -2, 1, -1, 1, 2, -1}};
  return set;
}

std::string refusal(std::vector<std::byte> payload, bool one_bit, std::int64_t count = -1) {
  try {
    const Expected expected{"rank 3", count};
    one_bit ? (void)decode_one_bit(payload, expected) : (void)decode_two_bits(payload, expected);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

template <typename Word>
std::vector<std::byte> with_word(std::vector<std::byte> payload, std::size_t place, Word word) {
  std::memcpy(payload.data() + place, &word, sizeof word);
  return payload;
}

TEST(BitPayloads, SayWhatOneBitSays) {
  for (const std::size_t count : {1U, 7U, 8U, 63U, 64U, 65U, 1000U}) {
    std::vector<float> numbers = normal_numbers(count, count);
    const OneBitVector sent = one_bit(numbers);
    const std::vector<std::byte> payload = encode_one_bit(sent);
    EXPECT_EQ(payload.size(), kOneBitHeader + (count + 7) / 8);
    const OneBitVector came = decode_one_bit(payload, {"here", static_cast<std::int64_t>(count)});
    ASSERT_EQ(came.count, count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(came.at(i), sent.at(i)) << i;
  }
}

TEST(BitPayloads, SayWhatTwoBitsSay) {
  EXPECT_EQ(decode_two_bits(encode_two_bits(far_apart()), {"here", 40'000}), far_apart());
  // Three gaps take a byte, two take 2, two take 3; and 14 bits.
  EXPECT_EQ(encode_two_bits(far_apart()).size(), kTwoBitHeader + 3 + 2 * 2 + 2 * 3 + 2);
}

TEST(BitPayloads, KeepWhatSparseLoCoSends) {
  SparseOuterGradient outer{0.05, 0.9F, chunks_of({}, 3000, 64, 4096), 3000};
  const SparseSet sent = outer.take(normal_numbers(3000, 5));
  EXPECT_EQ(decode_two_bits(encode_two_bits(sent), {"here", 3000}), sent);
}

TEST(BitPayloads, TakeNothingOfOneBitOnTrust) {
  std::vector<float> numbers = normal_numbers(13, 1);
  const std::vector<std::byte> good = encode_one_bit(one_bit(numbers));
  EXPECT_EQ(refusal(good, true, 13), "taken");
  EXPECT_THAT(refusal(good, true, 14), HasSubstr("of 13 numbers instead of 14"));
  EXPECT_THAT(refusal({good.begin(), good.end() - 1}, true), HasSubstr("is not one of 13"));
  EXPECT_THAT(refusal({good.begin(), good.begin() + 11}, true), HasSubstr("first words"));
  EXPECT_THAT(refusal(with_word(good, 8, NAN), true), HasSubstr("is no magnitude"));
  EXPECT_THAT(refusal(with_word(good, 8, -1.0F), true), HasSubstr("is no magnitude"));
  EXPECT_THAT(refusal(with_word(good, 4, 0xffff'ffffU), true), HasSubstr("numbers instead"));
  EXPECT_THAT(refusal(encode_two_bits(far_apart()), true), HasSubstr("does not begin with LB"));
  std::vector<std::byte> longer = good;
  longer.back() |= std::byte{0x80};
  EXPECT_THAT(refusal(longer, true), HasSubstr("bit 15 means nothing"));
}

TEST(BitPayloads, TakeNothingOfTwoBitsOnTrust) {
  const std::vector<std::byte> good = encode_two_bits(far_apart());
  EXPECT_EQ(refusal(good, false, 40'000), "taken");
  EXPECT_THAT(refusal(with_word(good, 4, 39'999U), false), HasSubstr("out of range"));
  EXPECT_THAT(refusal(with_word(good, 8, 40'001U), false), HasSubstr("40001 of 40000"));
  EXPECT_THAT(refusal(with_word(good, 16, INFINITY), false), HasSubstr("is no magnitude"));
  EXPECT_THAT(refusal({good.begin(), good.end() - 1}, false), HasSubstr("is not one of 7"));
  EXPECT_THAT(refusal({good.begin(), good.begin() + 22}, false), HasSubstr("does not end"));
  std::vector<std::byte> longer = good;
  longer.back() |= std::byte{0xc0};
  EXPECT_THAT(refusal(longer, false), HasSubstr("means nothing"));
}

TEST(BitPayloads, SayWhatFourBitsSay) {
  for (const std::size_t count : {1U, 2U, 127U, 128U, 129U, 1000U}) {
    std::vector<float> numbers = normal_numbers(count, count);
    numbers.front() = 0;
    const std::vector<std::byte> payload = encode_four_bits(numbers);
    EXPECT_EQ(payload.size(), 8 + (count + 127) / 128 * 4 + (count + 1) / 2);
    EXPECT_EQ(payload.size(), four_bit_bytes(count));
    round_to_int4(numbers);
    EXPECT_EQ(decode_four_bits(payload, {"here", static_cast<std::int64_t>(count)}), numbers);
  }
  const std::vector<float> tiny{1e-45F, -1e-44F, 4e-45F};  // steps of which there is none
  for (const float number : decode_four_bits(encode_four_bits(tiny), {"here", 3}))
    EXPECT_LE(std::fabs(number), 1e-44F);
}

TEST(BitPayloads, TakeNothingOfFourBitsOnTrust) {
  const auto why = [](const std::vector<std::byte>& payload) -> std::string {
    try {
      (void)decode_four_bits(payload, {"rank 3", 131});
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  const std::vector<std::byte> good = encode_four_bits(normal_numbers(131, 1));
  EXPECT_EQ(why(good), "taken");
  EXPECT_THAT(why({good.begin(), good.end() - 1}), HasSubstr("is not one of 131"));
  EXPECT_THAT(why({good.begin(), good.begin() + 7}), HasSubstr("first words"));
  EXPECT_THAT(why(with_word(good, 4, 132U)), HasSubstr("132 numbers instead"));
  EXPECT_THAT(why(with_word(good, 8, -1.0F)), HasSubstr("is no magnitude"));
  EXPECT_THAT(why(with_word(good, 12, 3e38F)), HasSubstr("of the steps"));
  EXPECT_THAT(why(encode_two_bits(far_apart())), HasSubstr("does not begin with LF"));
  std::vector<std::byte> other = good;
  other.back() |= std::byte{0x10};
  EXPECT_THAT(why(other), HasSubstr("means nothing"));
  other.back() = std::byte{0};
  EXPECT_THAT(why(other), HasSubstr("number 130 is -8"));
}

TEST(BitPayloads, TakeTheBytesThatAreExpected) {
  for (const double keep : {0.3, 0.01, 0.001}) {
    SparseOuterGradient outer{keep, 1, chunks_of({}, 200'000, 1, 200'000), 200'000};
    const SparseSet sent = outer.take(normal_numbers(200'000, 7));
    const double bytes = static_cast<double>(encode_two_bits(sent).size() - kTwoBitHeader);
    const auto kept = static_cast<double>(sent.blocks.size());
    EXPECT_NEAR(bytes / kept, expected_gap_bytes(keep) + 0.25, 0.05) << keep;
  }
}

}  // namespace
}  // namespace longhaul::compress

#include "compress/tensor/tensor.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/support.hpp"
#include "compress/wire/values.hpp"

namespace longhaul::compress::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSender = "rank 1, message of 0F1";

Expected of(std::int64_t count) { return {.source = kSender, .count = count}; }

std::vector<float> drawn(std::size_t count) {
  Random random{3};
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.normal());
  return numbers;
}

/// Of equal ones the first is kept.
TEST(Tensors, SendTheLargestNumbers) {
  std::vector<float> numbers{3, -1, 0.5, 0.5, -2, 2, 0, 1};
  const TensorCoding quarter{TensorFormat::topk, 0.25};
  const auto payload = encode_tensor(numbers, quarter);
  EXPECT_THAT(numbers, ElementsAre(3, 0, 0, 0, -2, 0, 0, 0));
  EXPECT_EQ(decode_tensor(payload, quarter, of(8)), numbers);
  EXPECT_EQ(payload.size(), kPayloadHeader + 2 * (1 + 2)) << "a gap and a bf16 each";
}

TEST(Tensors, BecomeWhatAReceiverDecodes) {
  for (const TensorFormat format : every<TensorFormat>())
    for (const std::size_t count : {1U, 127U, 128U, 1000U}) {
      const TensorCoding coding{format, 0.1};
      const std::vector<float> made = drawn(count);
      std::vector<float> numbers = made;
      const auto payload = encode_tensor(numbers, coding);
      EXPECT_EQ(decode_tensor(payload, coding, of(std::ssize(numbers))), numbers);
      EXPECT_LE(payload.size(), most_tensor_bytes(count, coding));
      if (format == TensorFormat::f32) {
        EXPECT_EQ(numbers, made);
      }
      if (format != TensorFormat::topk) {
        EXPECT_EQ(payload.size(), most_tensor_bytes(count, coding));
      }
    }
}

/// Whatever a sender says.
TEST(Tensors, AreRefusedWhereTheyAreNone) {
  const auto refused = [](std::vector<std::byte> payload, const TensorCoding& coding,
                          const char* why) {
    EXPECT_THAT([&] { (void)decode_tensor(payload, coding, of(256)); },
                ::testing::ThrowsMessage<Error>(AllOf(HasSubstr(kSender), HasSubstr(why))));
  };
  const auto encoded = [](const TensorCoding& coding, std::size_t count = 256) {
    std::vector<float> numbers = drawn(count);
    return encode_tensor(numbers, coding);
  };
  const TensorCoding tenth{TensorFormat::topk, 0.1}, bytes{TensorFormat::int8};
  refused(encoded({TensorFormat::topk, 0.2}), tenth, "has 51 of its numbers instead of 25");
  refused(encoded(tenth, 255), tenth, "255 numbers instead of 256");
  auto cut = encoded(tenth);
  cut.pop_back();
  refused(cut, tenth, "bytes are left");
  refused({}, tenth, "end early");
  cut = encoded(bytes);
  cut.pop_back();
  refused(cut, bytes, "is no tensor of 256 numbers");
  auto endless = encoded(bytes);
  for (std::size_t i = 0; i < 4; ++i) endless[i] = std::byte{0xff};  // a scale that is no number
  refused(endless, bytes, "is not finite");
  std::vector<float> numbers{1, INFINITY};
  for (const TensorFormat format : every<TensorFormat>())
    EXPECT_THROW((void)encode_tensor(numbers, {format, 0.5}), NotFinite) << to_string(format);
}

}  // namespace
}  // namespace longhaul::compress::test

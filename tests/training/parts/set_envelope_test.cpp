#include "training/parts/set_envelope.hpp"

#include <gtest/gtest.h>

namespace longhaul::training {
namespace {

TEST(SetEnvelopes, SayWhatIsInThem) {
  std::vector<std::byte> set(37);
  for (std::size_t i = 0; i < set.size(); ++i) set[i] = static_cast<std::byte>(7 * i);
  const std::vector<std::byte> bytes = sealed(3, 200, set);
  const auto envelope = envelope_of(bytes);
  ASSERT_TRUE(envelope);
  EXPECT_EQ(envelope->part, 3);
  EXPECT_EQ(envelope->iteration, 200);
  EXPECT_EQ(envelope->sum, sum_of_bytes(set));
  const auto inside = opened(bytes);
  EXPECT_EQ(std::vector<std::byte>(inside.begin(), inside.end()), set);
}

TEST(SetEnvelopes, AreNotInFewerBytes) {
  const std::vector<std::byte> few(15);
  EXPECT_FALSE(envelope_of(few));
  EXPECT_TRUE(opened(few).empty());
  EXPECT_TRUE(opened(sealed(0, 0, {})).empty());
}

TEST(SetEnvelopes, SeeEveryBytesChangeAndEveryLength) {
  for (const std::size_t size : {1U, 7U, 8U, 9U, 64U}) {
    std::vector<std::byte> set(size);
    const std::uint64_t sum = sum_of_bytes(set);
    for (std::byte& byte : set)
      for (const std::byte other : {std::byte{1}, std::byte{0x80}}) {
        const std::byte before = std::exchange(byte, byte ^ other);
        EXPECT_NE(sum_of_bytes(set), sum) << size;
        byte = before;
      }
    set.push_back(std::byte{0});
    EXPECT_NE(sum_of_bytes(set), sum) << "one more, though it is 0";
  }
}

}  // namespace
}  // namespace longhaul::training

#include "compress/wire/wire.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/select/sparsifier.hpp"
#include "compress/support.hpp"
#include "compress/wire/values.hpp"

namespace longhaul::compress::test {
namespace {

using ::testing::HasSubstr;

constexpr Expected kFrom{.source = "rank 3, part 2, iteration 10"};

SparseSet set_of(std::size_t count, double keep, int block, ValueFormat values,
                 std::uint64_t seed) {
  const Settings settings{.keep = keep, .block = block, .values = values};
  Sparsifier sparsifier{settings, static_cast<std::int64_t>(count)};
  std::vector<float> sum = gradient_of(count, seed);
  return sparsifier.take(sum);
}

TEST(Wire, IsReadAsItWasWritten) {
  for (const ValueFormat values : every<ValueFormat>())
    for (const int block : {1, 2, 4, 8, 16})
      for (const std::size_t count : {1U, 15U, 33U, 1000U, 70'001U})
        for (const double keep : {0.001, 1.0}) {
          if (count > 1000 && block > 1 && block < 16) continue;
          const SparseSet set = set_of(count, keep, block, values, count);
          for (const IndexFormat index : every<IndexFormat>())
            ASSERT_EQ(decode(encode(set, index, values), kFrom), set)
                << to_string(index) << " " << to_string(values) << " " << block << " " << count;
        }
}

TEST(Wire, OfNothingIsAHeader) {
  const SparseSet empty{1000, 16, {}, {}};
  EXPECT_EQ(encode(empty, IndexFormat::gaps, ValueFormat::f32).size(), kPayloadHeader);
  for (const IndexFormat index : every<IndexFormat>())
    EXPECT_EQ(decode(encode(empty, index, ValueFormat::int8), kFrom), empty);
}

TEST(Wire, TakesTheBytesOfTheIssue) {
  constexpr std::size_t kCount = 800'000;
  const SparseSet set = set_of(kCount, 0.01, 16, ValueFormat::f32, 4);
  const auto bytes_a_number = [&](IndexFormat index, ValueFormat values) {
    return static_cast<double>(encode(set, index, values).size()) /
           static_cast<double>(set.values.size());
  };
  EXPECT_LE(bytes_a_number(IndexFormat::gaps, ValueFormat::f32), 4.2);
  EXPECT_LE(bytes_a_number(IndexFormat::gaps, ValueFormat::bf16), 2.2);
  EXPECT_GE(bytes_a_number(IndexFormat::gaps, ValueFormat::f32), 4.06);
  EXPECT_NEAR(bytes_a_number(IndexFormat::coo32, ValueFormat::f32), 8, 0.002);
  EXPECT_NEAR(bytes_a_number(IndexFormat::coo16, ValueFormat::f32), 6, 0.01);
}

TEST(Wire, SizeIsKnownBeforeThereIsAPayload) {
  constexpr std::size_t kCount = 160'000;
  for (const double keep : {0.001, 0.01, 0.2})
    for (const ValueFormat values : every<ValueFormat>()) {
      Settings settings{.method = Method::randomk, .keep = keep, .block = 4, .values = values};
      Sparsifier sparsifier{settings, kCount};
      const SparseSet set = sparsifier.take_without_feedback(std::vector<float>(kCount, 1));
      for (const IndexFormat index : every<IndexFormat>()) {
        settings.index = index;
        const auto bytes = static_cast<double>(encode(set, index, values).size());
        EXPECT_NEAR(expected_payload_bytes(kCount, settings) / bytes, 1,
                    index == IndexFormat::gaps ? 0.02 : 1e-9)
            << to_string(index) << " " << to_string(values) << " " << keep;
      }
    }
}

template <typename Number>
void put_at(std::vector<std::byte>& payload, std::size_t at, Number number) {
  std::memcpy(payload.data() + at, &number, sizeof number);
}

std::string refusal_of(const std::vector<std::byte>& payload, const Expected& expected = kFrom) {
  try {
    static_cast<void>(decode(payload, expected));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "taken";
}

TEST(Decoder, RefusesLiesByName) {
  const SparseSet set{100, 4, {2, 7, 9}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  const auto coo = encode(set, IndexFormat::coo32, ValueFormat::f32);
  auto lie = coo;
  put_at(lie, 12 + 16, std::uint32_t{400});
  EXPECT_THAT(refusal_of(lie), HasSubstr("place 400 is out of range"));
  EXPECT_THAT(refusal_of(lie), HasSubstr("rank 3, part 2, iteration 10: "));
  lie = coo;
  put_at(lie, 12 + 16, std::uint32_t{4});
  put_at(lie, 12 + 20, std::uint32_t{5});
  put_at(lie, 12 + 24, std::uint32_t{6});
  put_at(lie, 12 + 28, std::uint32_t{7});
  EXPECT_THAT(refusal_of(lie), HasSubstr("block 1 stands after block 2"));
  put_at(lie, 12 + 16, std::uint32_t{8});
  EXPECT_THAT(refusal_of(lie), HasSubstr("block 2 stands there twice"));
  lie = coo;
  put_at(lie, 12 + 4, std::uint32_t{11});
  EXPECT_THAT(refusal_of(lie), HasSubstr("place 11 stands where 9 must"));
  put_at(lie, 8, std::uint32_t{4});
  EXPECT_NE(refusal_of(lie), "taken");
  put_at(lie, 8, std::uint32_t{26});
  EXPECT_THAT(refusal_of(lie), HasSubstr("it keeps 26 of 25 blocks"));
}

TEST(Decoder, RefusesEveryTruncationAndEveryAddition) {
  const SparseSet set = set_of(70'000, 0.001, 16, ValueFormat::int8, 3);
  for (const IndexFormat index : every<IndexFormat>())
    for (const ValueFormat values : every<ValueFormat>()) {
      const auto payload = encode(set, index, values);
      for (std::size_t size = 0; size < payload.size(); ++size)
        ASSERT_NE(refusal_of({payload.begin(), payload.begin() + static_cast<long>(size)}), "taken")
            << size;
      auto longer = payload;
      longer.push_back({});
      EXPECT_THAT(refusal_of(longer), HasSubstr("bytes are left"));
    }
}

TEST(Decoder, RefusesOtherVectorsFormatsAndValues) {
  const SparseSet set{100, 4, {2}, {1, 2, 3, 4}};
  const auto payload = encode(set, IndexFormat::gaps, ValueFormat::f32);
  EXPECT_THAT(refusal_of(payload, {.source = "x", .count = 99}),
              HasSubstr("it is of 100 numbers instead of 99"));
  EXPECT_THAT(refusal_of(payload, {.source = "x", .block = 16}),
              HasSubstr("it has blocks of 4 instead of 16"));
  auto lie = payload;
  put_at(lie, 13, 0x7fc0'0000U);
  EXPECT_THAT(refusal_of(lie), HasSubstr("value 0 is no finite number"));
  lie = payload;
  lie[2] = std::byte{0x7f};
  EXPECT_THAT(refusal_of(lie), HasSubstr("there is no format"));
  lie = payload;
  lie[3] = std::byte{3};
  EXPECT_THAT(refusal_of(lie), HasSubstr("there are no blocks of 3"));
  lie = payload;
  lie[12] = std::byte{0x80};
  EXPECT_NE(refusal_of(lie), "taken");
}

TEST(Decoder, RefusesStretchesThatDoNotAddUp) {
  const SparseSet set{140'000, 4, {2, 20'000}, {1, 2, 3, 4, 5, 6, 7, 8}};
  const auto payload = encode(set, IndexFormat::coo16, ValueFormat::f32);
  ASSERT_EQ(decode(payload, kFrom), set);
  auto lie = payload;
  put_at(lie, 12, std::uint32_t{3});
  EXPECT_THAT(refusal_of(lie), HasSubstr("stretch 0 ends inside a block"));
  lie = payload;
  put_at(lie, 12, std::uint32_t{0});
  EXPECT_NE(refusal_of(lie), "taken");
  lie = payload;
  put_at(lie, 12, std::uint32_t{0xffff'ffff});
  EXPECT_NE(refusal_of(lie), "taken");
}

}  // namespace
}  // namespace longhaul::compress::test

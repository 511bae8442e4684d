#include <algorithm>
#include <array>
#include <cmath>

#include "base/kept_share.hpp"
#include "compress/rivals/bit_payloads.hpp"
#include "compress/tensor/tensor.hpp"
#include "compress/wire/dense.hpp"
#include "compress/wire/wire.hpp"
#include "fuzz/refusal.hpp"
#include "fuzz/targets.hpp"

namespace longhaul::fuzz {
namespace {

constexpr const char* kSender = "rank 3, part 2, iteration 10";

/// Whole blocks in order, a value for each of their numbers.
void expect_a_set(const compress::SparseSet& set) {
  std::size_t numbers = 0;
  std::int64_t before = -1;
  for (const std::uint32_t block : set.blocks) {
    LONGHAUL_ASSERT(block > before && block < blocks_in(set.count, set.block), "block {} after {}",
                    block, before);
    before = block;
    numbers += set.size_of(block);
  }
  LONGHAUL_ASSERT(numbers == set.values.size(), "{} values of {}", set.values.size(), numbers);
}

/// Of one bit a number, two or four; what was read is written as it came, or as a set with the
/// same.
void payload_of_bits(std::span<const std::byte> data) {
  try {
    if (data[1] == std::byte{'B'}) {
      const auto again = compress::encode_one_bit(compress::decode_one_bit(data, {kSender}));
      LONGHAUL_ASSERT(std::ranges::equal(again, data), "{} bytes", again.size());
      return;
    }
    if (data[1] == std::byte{'F'}) {
      const std::vector<float> numbers = compress::decode_four_bits(data, {kSender});
      const auto again =
          compress::encode_four_bits(numbers);  // a stranger's steps need not be ours
      LONGHAUL_ASSERT(compress::decode_four_bits(again, {kSender}).size() == numbers.size(),
                      "{} numbers", numbers.size());
      return;
    }
    const compress::SparseSet set = compress::decode_two_bits(data, {kSender});
    expect_a_set(set);
    const auto again = compress::decode_two_bits(compress::encode_two_bits(set), {kSender});
    LONGHAUL_ASSERT(again == set, "not the same again: {} numbers", set.blocks.size());
  } catch (const Error& error) {
    expect_refusal(error, kSender);
  }
}

/// What one stage sends another: as many numbers as are awaited, all finite.
void a_tensor(std::span<const std::byte> data, const compress::TensorCoding& coding) {
  for (const std::int64_t count : {0, 1, 37, 256}) {
    try {
      const std::vector<float> numbers =
          compress::decode_tensor(data, coding, {.source = kSender, .count = count});
      LONGHAUL_ASSERT(std::ssize(numbers) == count, "{} of {} numbers", numbers.size(), count);
      LONGHAUL_ASSERT(std::ranges::all_of(numbers, [](float one) { return std::isfinite(one); }),
                      "of {} numbers one is not finite", count);
      LONGHAUL_ASSERT(
          data.size() <= compress::most_tensor_bytes(static_cast<std::size_t>(count), coding),
          "{} bytes of {} numbers", data.size(), count);
    } catch (const Error& error) {
      expect_refusal(error, kSender);
    }
  }
}

}  // namespace

void payload(std::string_view bytes) {
  const std::span<const std::byte> data = std::as_bytes(std::span{bytes});
  try {
    (void)compress::decode_dense(data, {.source = kSender});
  } catch (const Error& error) {
    expect_refusal(error, kSender);
  }
  for (const compress::TensorFormat format : every<compress::TensorFormat>())
    a_tensor(data, {format, 0.25});
  if (data.size() > 1 &&
      (data[1] == std::byte{'B'} || data[1] == std::byte{'Q'} || data[1] == std::byte{'F'}))
    return payload_of_bits(data);
  compress::SparseSet set;
  try {
    set = compress::decode(data, {.source = kSender});
  } catch (const Error& error) {
    expect_refusal(error, kSender);
    return;
  }
  expect_a_set(set);
  const auto format = static_cast<compress::ValueFormat>(std::to_integer<unsigned>(data[2]) >> 4U);
  if (format != compress::ValueFormat::int8) {  // a stranger's scale need not be ours
    const auto again = compress::encode(set, compress::IndexFormat::gaps, format);
    LONGHAUL_ASSERT(compress::decode(again, {.source = kSender}).blocks == set.blocks,
                    "not the same again: {} blocks", set.blocks.size());
  }
  const std::array<compress::SparseSet, 2> sets{set, set};
  LONGHAUL_ASSERT(compress::merge(sets).blocks == set.blocks, "{} blocks", set.blocks.size());
}

}  // namespace longhaul::fuzz

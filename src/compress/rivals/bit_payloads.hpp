#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compress/rivals/one_bit.hpp"
#include "compress/rivals/outer_steps.hpp"
#include "compress/sparse_set.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::compress {

// Payloads of one, two or four bits a number, little-endian; bits of a byte from the least on,
// those that are left over 0.
//   one bit:  the letters "LB", 16 zero bits, the count, the magnitude as f32; a bit a number: it
//             is negative.
//   two bits: the letters "LQ", 16 zero bits, the count, the numbers kept, the smaller and the
//             larger magnitude as f32; for each number that is kept those between it and the one
//             before, 7 bits a byte, least first, the top bit says that more follow; then two bits
//             each: it is negative, it has the larger magnitude.
//   four bits: the letters "LF", 16 zero bits, the count; the step of each 128 numbers as f32; of
//             each number how many steps it is, from -7 to 7, and 8.
inline constexpr std::size_t kOneBitHeader = 12, kTwoBitHeader = 20, kFourBitHeader = 8;

[[nodiscard]] std::vector<std::byte> encode_one_bit(const OneBitVector& vector);

/// Takes nothing on trust: throws Error where the payload is of another kind, truncated or longer
/// than it says, where a bit that means nothing is set, or where the magnitude is none.
[[nodiscard]] OneBitVector decode_one_bit(std::span<const std::byte> payload,
                                          const Expected& expected);

/// Of a set of single numbers that have two magnitudes at most (round_to_two_bits).
[[nodiscard]] std::vector<std::byte> encode_two_bits(const SparseSet& set);

/// Takes nothing on trust, as decode_one_bit(); a place out of range is refused, too.
[[nodiscard]] SparseSet decode_two_bits(std::span<const std::byte> payload,
                                        const Expected& expected);

/// Rounds as round_to_int4().
[[nodiscard]] std::vector<std::byte> encode_four_bits(std::span<const float> numbers);

/// Takes nothing on trust, as decode_one_bit().
[[nodiscard]] std::vector<float> decode_four_bits(std::span<const std::byte> payload,
                                                  const Expected& expected);

/// Of encode_four_bits().
[[nodiscard]] constexpr std::size_t four_bit_bytes(std::size_t numbers) {
  return kFourBitHeader + 4 * ((numbers + kInt4Group - 1) / kInt4Group) + (numbers + 1) / 2;
}

/// Bytes that a gap takes where a share `keep` of all numbers is kept, any as likely as another.
[[nodiscard]] double expected_gap_bytes(double keep);

}  // namespace longhaul::compress

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compress/rivals/one_bit.hpp"
#include "compress/sparse_set.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::compress {

// Payloads of a bit or two a number, little-endian; bits of a byte from the least on, those that
// are left over 0.
//   one bit:  the letters "LB", 16 zero bits, the count, the magnitude as f32; a bit a number: it
//             is negative.
//   two bits: the letters "LQ", 16 zero bits, the count, the numbers kept, the smaller and the
//             larger magnitude as f32; for each number that is kept those between it and the one
//             before, 7 bits a byte, least first, the top bit says that more follow; then two bits
//             each: it is negative, it has the larger magnitude.
inline constexpr std::size_t kOneBitHeader = 12, kTwoBitHeader = 20;

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

/// Bytes that a gap takes where a share `keep` of all numbers is kept, any as likely as another.
[[nodiscard]] double expected_gap_bytes(double keep);

}  // namespace longhaul::compress

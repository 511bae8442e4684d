#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compress/settings.hpp"
#include "compress/sparse_set.hpp"

namespace longhaul::compress {

// A payload, little-endian: 12 bytes (the letters "LS", a byte for both formats, the block, the
// vector's count and the blocks kept, 32 bits each), places, values.
//   coo32: 32 bits a number, its place.
//   coo16: for each stretch of 65,536 numbers of the vector 32 bits, how many of them are kept;
//   then
//          16 bits a number, its place in its stretch.
//   gaps:  for each block the blocks between it and the one before, 7 bits a byte, least first; the
//          top bit says that more follow.
inline constexpr std::size_t kPayloadHeader = 12;
inline constexpr std::int64_t kStretch = 65'536;  ///< of coo16

/// Where a payload came from and what it must be of; foreign data is refused in one line.
struct Expected {
  std::string_view source;  ///< "rank 3, part 2, iteration 10": first in the message
  std::int64_t count = -1;  ///< of the vector; -1: what the payload says, up to kMostNumbers
  int block = -1;           ///< -1: what it says
};

/// The values are rounded to the format (round_values) on the way, if they are not yet.
[[nodiscard]] std::vector<std::byte> encode(const SparseSet& set, IndexFormat index,
                                            ValueFormat values);

/// Takes nothing on trust: throws Error (exit code 2) where the payload is truncated or longer than
/// it says, where a place is out of range, descends or stands twice, where numbers are no whole
/// blocks, where counts do not add up, or where a value is no finite number.
[[nodiscard]] SparseSet decode(std::span<const std::byte> payload, const Expected& expected);

/// Bytes of a payload of so many blocks, before there is one: exact for coo32 and coo16 unless the
/// short last block is kept; of gaps, the mean over places drawn at random.
[[nodiscard]] double expected_payload_bytes(std::int64_t count, const Settings& settings);

}  // namespace longhaul::compress

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/listed_enum.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::compress {

/// Numbers of a vector of which all travel: as they are, as IEEE halves, or as bytes with a scale
/// for each 128 (ValueFormat::int8).
#define LONGHAUL_DENSE_FORMATS(X) X(f32, "f32") X(fp16, "fp16") X(int8, "int8")
LONGHAUL_LISTED_ENUM(DenseFormat, LONGHAUL_DENSE_FORMATS);

/// Makes of each finite number what a receiver decodes. fp16: the nearest half, of two the even
/// one; beyond the largest finite half, that.
void round_dense(std::span<float> numbers, DenseFormat format);

/// A payload, little-endian: 12 bytes (the letters "LD", the format, a zero, the count, 32 bits,
/// and 32 zero bits), numbers. They are rounded on the way, if they are not yet.
[[nodiscard]] std::vector<std::byte> encode_dense(std::span<const float> numbers,
                                                  DenseFormat format);

/// Takes nothing on trust, as decode().
[[nodiscard]] std::vector<float> decode_dense(std::span<const std::byte> payload,
                                              const Expected& expected);

}  // namespace longhaul::compress

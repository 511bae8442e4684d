#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/settings.hpp"

namespace longhaul::compress {

/// Numbers of int8 that share one scale, of 4 bytes.
inline constexpr std::size_t kScaleGroup = 128;

/// Makes of each value, a finite number, what a receiver decodes, a finite one. Doing so twice
/// changes nothing more. bf16: beyond its largest finite number values are that. int8: values
/// of a group are whole multiples, up to 127, of a scale with 16 significant bits, so that 127
/// times it is exact; of a group below 1e-30 nothing is left.
void round_values(std::span<float> values, ValueFormat format);

[[nodiscard]] std::size_t bytes_of_values(std::size_t count, ValueFormat format);

/// Appends the bytes of values that were rounded.
void write_values(std::span<const float> rounded, ValueFormat format, std::vector<std::byte>& to);

/// The values in `bytes`, of which there are bytes_of_values(count).
[[nodiscard]] std::vector<float> read_values(std::span<const std::byte> bytes, std::size_t count,
                                             ValueFormat format);

}  // namespace longhaul::compress

#include "compress/wire/values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/bf16.hpp"
#include "base/error.hpp"

namespace longhaul::compress {
namespace {

constexpr float kMostSteps = 127;
constexpr float kNothing = 1e-30F;

/// The least number of 16 significant bits that 127 times covers the largest magnitude, or that
/// does so as nearly as a finite number can; 0 of nothing.
float scale_of(std::span<const float> group) {
  float largest = 0;
  for (const float value : group) largest = std::max(largest, std::fabs(value));
  if (largest < kNothing) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(largest / kMostSteps);
  const float down = std::bit_cast<float>(bits & 0xffff'ff00U);
  if (down * kMostSteps >= largest) return down;
  const float up = std::bit_cast<float>((bits & 0xffff'ff00U) + 0x100U);
  return std::isfinite(up * kMostSteps) ? up : down;
}

/// Of a finite number, which stays one: beyond the largest of 16 bits it is that.
std::uint16_t finite_bf16(float value) {
  const std::uint16_t bits = to_bf16(value);
  constexpr std::uint16_t kInfinite = 0x7f80U;
  return (bits & 0x7fffU) == kInfinite ? static_cast<std::uint16_t>(bits - 1) : bits;
}

/// Whole steps of the scale, from -127 to 127. Ties to even.
float steps_of(float value, float scale) {
  return std::clamp(std::nearbyint(value / scale), -kMostSteps, kMostSteps);
}

template <typename Take>
void each_group(std::size_t count, Take take) {
  for (std::size_t begin = 0; begin < count; begin += kScaleGroup)
    take(begin, std::min(kScaleGroup, count - begin));
}

void round_to_int8(std::span<float> values) {
  each_group(values.size(), [&](std::size_t begin, std::size_t size) {
    const std::span<float> group = values.subspan(begin, size);
    const float scale = scale_of(group);
    for (float& value : group) value = scale == 0 ? 0 : steps_of(value, scale) * scale;
  });
}

std::byte* append(std::vector<std::byte>& to, std::size_t bytes) {
  to.resize(to.size() + bytes);
  return to.data() + to.size() - bytes;
}

void write_int8(std::span<const float> values, std::byte* to) {
  each_group(values.size(), [&](std::size_t begin, std::size_t size) {
    const std::span<const float> group = values.subspan(begin, size);
    const float scale = scale_of(group);
    std::memcpy(to, &scale, sizeof scale);
    to += sizeof scale;
    for (const float value : group)
      *to++ =
          static_cast<std::byte>(static_cast<std::int8_t>(scale == 0 ? 0 : steps_of(value, scale)));
  });
}

void read_int8(const std::byte* from, std::span<float> values) {
  each_group(values.size(), [&](std::size_t begin, std::size_t size) {
    float scale = 0;
    std::memcpy(&scale, from, sizeof scale);
    from += sizeof scale;
    for (float& value : values.subspan(begin, size))
      value = static_cast<float>(static_cast<std::int8_t>(*from++)) * scale;
  });
}

}  // namespace

void round_values(std::span<float> values, ValueFormat format) {
  switch (format) {
    case ValueFormat::f32: return;
    case ValueFormat::bf16:
      for (float& value : values) value = from_bf16(finite_bf16(value));
      return;
    case ValueFormat::int8: return round_to_int8(values);
  }
}

std::size_t bytes_of_values(std::size_t count, ValueFormat format) {
  switch (format) {
    case ValueFormat::f32: return 4 * count;
    case ValueFormat::bf16: return 2 * count;
    case ValueFormat::int8: break;
  }
  return count + (count + kScaleGroup - 1) / kScaleGroup * sizeof(float);
}

void write_values(std::span<const float> rounded, ValueFormat format, std::vector<std::byte>& to) {
  std::byte* at = append(to, bytes_of_values(rounded.size(), format));
  if (rounded.empty()) return;
  if (format == ValueFormat::f32) {
    std::memcpy(at, rounded.data(), rounded.size_bytes());
  } else if (format == ValueFormat::bf16) {
    for (const float value : rounded) {
      const std::uint16_t bits = finite_bf16(value);
      std::memcpy(at, &bits, sizeof bits);
      at += sizeof bits;
    }
  } else {
    write_int8(rounded, at);
  }
}

std::vector<float> read_values(std::span<const std::byte> bytes, std::size_t count,
                               ValueFormat format) {
  LONGHAUL_ASSERT(bytes.size() == bytes_of_values(count, format), "{} bytes", bytes.size());
  std::vector<float> values(count);
  if (count == 0) return values;
  if (format == ValueFormat::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  } else if (format == ValueFormat::bf16) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, sizeof bits);
      values[i] = from_bf16(bits);
    }
  } else {
    read_int8(bytes.data(), values);
  }
  return values;
}

}  // namespace longhaul::compress

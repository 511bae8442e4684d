#include "compress/wire/dense.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "compress/wire/values.hpp"

namespace longhaul::compress {
namespace {

constexpr float kLargestHalf = 65'504;
constexpr int kFloatBits = 23, kHalfBits = 10;  ///< of their fractions
constexpr int kLeastExponent = -14;             ///< of a half that is not subnormal

/// The nearest half of a finite number, as a float. Adding and taking away a power of two rounds at
/// its last place, to even.
float rounded_half(float value) {
  const float size = std::min(std::fabs(value), kLargestHalf);
  if (size == 0) return std::copysign(0.0F, value);
  const int exponent = std::max(std::ilogb(size), kLeastExponent);
  const float step = std::ldexp(1.0F, exponent + kFloatBits - kHalfBits);
  volatile const float sum = size + step;  // the compiler may not take it for `size`
  return std::copysign(std::min(sum - step, kLargestHalf), value);
}

/// Of a number that is one.
std::uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16U & 0x8000U);
  const float size = std::fabs(value);
  if (size < std::ldexp(1.0F, kLeastExponent))
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint16_t>(std::ldexp(size, kHalfBits - kLeastExponent)));
  const std::uint32_t exponent = (bits >> 23U & 0xffU) - 112;
  return static_cast<std::uint16_t>(sign | exponent << 10U | (bits >> 13U & 0x3ffU));
}

float half_at(std::uint16_t bits) {
  const std::uint32_t exponent = bits >> 10U & 0x1fU, fraction = bits & 0x3ffU;
  float size = std::ldexp(static_cast<float>(fraction), kLeastExponent - kHalfBits);
  if (exponent > 0)
    size = std::ldexp(static_cast<float>(fraction + 0x400U),
                      static_cast<int>(exponent) - 15 - kHalfBits);
  if (exponent == 0x1fU) size = fraction == 0 ? INFINITY : NAN;
  return (bits & 0x8000U) != 0 ? -size : size;
}

std::size_t bytes_of_numbers(std::size_t count, DenseFormat format) {
  switch (format) {
    case DenseFormat::f32: return 4 * count;
    case DenseFormat::fp16: return 2 * count;
    case DenseFormat::int8: break;
  }
  return bytes_of_values(count, ValueFormat::int8);
}

std::vector<float> read_numbers(std::span<const std::byte> bytes, std::size_t count,
                                DenseFormat format) {
  if (format != DenseFormat::fp16)
    return read_values(bytes, count,
                       format == DenseFormat::f32 ? ValueFormat::f32 : ValueFormat::int8);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    numbers[i] = half_at(bits);
  }
  return numbers;
}

template <typename... Args>
[[noreturn]] void refuse_dense(const Expected& expected, fmt::format_string<Args...> format,
                               Args&&... args) {
  throw Error{fmt::format("{}: {}. Look at what sent it.", expected.source,
                          fmt::format(format, std::forward<Args>(args)...))};
}

}  // namespace

void round_dense(std::span<float> numbers, DenseFormat format) {
  if (format == DenseFormat::int8) round_values(numbers, ValueFormat::int8);
  if (format != DenseFormat::fp16) return;
  for (float& number : numbers) number = rounded_half(number);
}

std::vector<std::byte> encode_dense(std::span<const float> numbers, DenseFormat format) {
  std::vector<float> rounded(numbers.begin(), numbers.end());
  round_dense(rounded, format);
  std::vector<std::byte> payload(kPayloadHeader);
  payload.reserve(kPayloadHeader + bytes_of_numbers(numbers.size(), format));
  payload[0] = std::byte{'L'};
  payload[1] = std::byte{'D'};
  payload[2] = static_cast<std::byte>(format);
  const auto count = static_cast<std::uint32_t>(numbers.size());
  std::memcpy(payload.data() + 4, &count, sizeof count);
  if (format != DenseFormat::fp16) {
    write_values(rounded, format == DenseFormat::f32 ? ValueFormat::f32 : ValueFormat::int8,
                 payload);
    return payload;
  }
  for (const float number : rounded) {
    const std::uint16_t bits = half_bits(number);
    payload.push_back(static_cast<std::byte>(bits & 0xffU));
    payload.push_back(static_cast<std::byte>(bits >> 8U));
  }
  return payload;
}

std::vector<float> decode_dense(std::span<const std::byte> payload, const Expected& expected) {
  if (payload.size() < kPayloadHeader)
    refuse_dense(expected, "a payload of {} bytes ends in its first words", payload.size());
  if (payload[0] != std::byte{'L'} || payload[1] != std::byte{'D'})
    refuse_dense(expected, "the payload does not begin with LD");
  const auto format = static_cast<DenseFormat>(payload[2]);
  if (!is_listed(format))
    refuse_dense(expected, "there is no format {}", std::to_integer<int>(payload[2]));
  std::uint32_t count = 0;
  std::memcpy(&count, payload.data() + 4, sizeof count);
  if (expected.count >= 0 && count != expected.count)
    refuse_dense(expected, "the payload is of {} numbers instead of {}", count, expected.count);
  const std::size_t bytes = bytes_of_numbers(count, format);
  if (payload.size() != kPayloadHeader + bytes)
    refuse_dense(expected, "a payload of {} bytes is not one of {} numbers", payload.size(), count);
  std::vector<float> numbers = read_numbers(payload.subspan(kPayloadHeader), count, format);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i])) refuse_dense(expected, "number {} is not finite", i);
  return numbers;
}

}  // namespace longhaul::compress

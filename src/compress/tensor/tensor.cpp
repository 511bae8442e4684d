#include "compress/tensor/tensor.hpp"

#include <algorithm>
#include <cmath>

#include "base/kept_share.hpp"
#include "compress/select/sparsifier.hpp"
#include "compress/wire/values.hpp"

namespace longhaul::compress {
namespace {

constexpr std::size_t kLongestGap = 5;  ///< bytes

Settings settings_of(const TensorCoding& coding) {
  Settings settings;
  settings.method = Method::topk;
  settings.keep = coding.keep;
  settings.block = 1;
  settings.values = ValueFormat::bf16;
  settings.index = IndexFormat::gaps;
  return settings;
}

ValueFormat values_of(const TensorCoding& coding) {
  switch (coding.format) {
    case TensorFormat::f32: return ValueFormat::f32;
    case TensorFormat::int8: return ValueFormat::int8;
    case TensorFormat::bf16:
    case TensorFormat::topk: break;
  }
  return ValueFormat::bf16;
}

std::vector<std::byte> encode_largest(std::span<float> numbers, const TensorCoding& coding) {
  const Settings settings = settings_of(coding);
  Sparsifier sparsifier{settings, static_cast<std::int64_t>(numbers.size())};
  const SparseSet set = sparsifier.take_without_feedback(numbers);
  std::ranges::fill(numbers, 0.0F);
  for (std::size_t i = 0; i < set.blocks.size(); ++i) numbers[set.blocks[i]] = set.values[i];
  return encode(set, settings.index, settings.values);
}

template <typename... Args>
[[noreturn]] void refuse_tensor(const Expected& expected, fmt::format_string<Args...> format,
                                Args&&... args) {
  throw Error{fmt::format("{}: {}. Look at what sent it.", expected.source,
                          fmt::format(format, std::forward<Args>(args)...))};
}

std::vector<float> decode_largest(std::span<const std::byte> payload, const TensorCoding& coding,
                                  Expected expected) {
  expected.block = 1;
  const SparseSet set = decode(payload, expected);
  const std::int64_t kept = blocks_to_keep(expected.count, coding.keep, 1);
  if (std::ssize(set.blocks) != kept)
    refuse_tensor(expected, "a tensor has {} of its numbers instead of {}", set.blocks.size(),
                  kept);
  std::vector<float> numbers(static_cast<std::size_t>(expected.count));
  for (std::size_t i = 0; i < set.blocks.size(); ++i) numbers[set.blocks[i]] = set.values[i];
  return numbers;
}

}  // namespace

std::vector<std::byte> encode_tensor(std::span<float> numbers, const TensorCoding& coding) {
  if (coding.format == TensorFormat::topk) return encode_largest(numbers, coding);
  require_finite(numbers);
  const ValueFormat values = values_of(coding);
  round_values(numbers, values);
  std::vector<std::byte> payload;
  write_values(numbers, values, payload);
  return payload;
}

std::vector<float> decode_tensor(std::span<const std::byte> payload, const TensorCoding& coding,
                                 const Expected& expected) {
  LONGHAUL_ASSERT(expected.count >= 0, "{} numbers", expected.count);
  if (coding.format == TensorFormat::topk) return decode_largest(payload, coding, expected);
  const ValueFormat values = values_of(coding);
  const auto count = static_cast<std::size_t>(expected.count);
  if (payload.size() != bytes_of_values(count, values))
    refuse_tensor(expected, "a payload of {} bytes is no tensor of {} numbers", payload.size(),
                  count);
  std::vector<float> numbers = read_values(payload, count, values);
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(numbers[i])) refuse_tensor(expected, "number {} is not finite", i);
  return numbers;
}

std::size_t most_tensor_bytes(std::size_t count, const TensorCoding& coding) {
  if (coding.format != TensorFormat::topk) return bytes_of_values(count, values_of(coding));
  const auto kept =
      static_cast<std::size_t>(blocks_to_keep(static_cast<std::int64_t>(count), coding.keep, 1));
  return kPayloadHeader + kept * kLongestGap + bytes_of_values(kept, ValueFormat::bf16);
}

}  // namespace longhaul::compress

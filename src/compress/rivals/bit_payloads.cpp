#include "compress/rivals/bit_payloads.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"

namespace longhaul::compress {
namespace {

template <typename... Args>
[[noreturn]] void refuse_bits(const Expected& expected, fmt::format_string<Args...> format,
                              Args&&... args) {
  throw Error{fmt::format("{}: {}. Look at what sent it.", expected.source,
                          fmt::format(format, std::forward<Args>(args)...))};
}

template <typename Word>
void put_word(std::vector<std::byte>& to, Word word) {
  static_assert(sizeof word == 4);
  to.resize(to.size() + sizeof word);
  std::memcpy(to.data() + to.size() - sizeof word, &word, sizeof word);
}

template <typename Word>
Word word_at(std::span<const std::byte> payload, std::size_t place) {
  Word word{};
  static_assert(sizeof word == 4);
  std::memcpy(&word, payload.data() + place, sizeof word);
  return word;
}

std::vector<std::byte> begun_with(char letter) {
  return {std::byte{'L'}, static_cast<std::byte>(letter), std::byte{0}, std::byte{0}};
}

/// The count of a payload of that letter, with a header of so many bytes.
std::uint32_t count_in(std::span<const std::byte> payload, const Expected& expected, char letter,
                       std::size_t header) {
  if (payload.size() < header)
    refuse_bits(expected, "a payload of {} bytes ends in its first words", payload.size());
  if (!std::ranges::equal(payload.first(4), begun_with(letter)))
    refuse_bits(expected, "the payload does not begin with L{}", letter);
  const auto count = word_at<std::uint32_t>(payload, 4);
  if (expected.count >= 0 ? count != expected.count : count > kMostNumbers)
    refuse_bits(expected, "the payload is of {} numbers instead of {}", count, expected.count);
  return count;
}

float magnitude_at(std::span<const std::byte> payload, std::size_t place,
                   const Expected& expected) {
  const auto magnitude = word_at<float>(payload, place);
  if (!std::isfinite(magnitude) || std::signbit(magnitude))
    refuse_bits(expected, "{} is no magnitude", magnitude);
  return magnitude;
}

bool bit_at(std::span<const std::byte> bits, std::size_t i) {
  return (std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1U) != 0;
}

void check_left_over(std::span<const std::byte> bits, std::size_t used, const Expected& expected) {
  for (std::size_t i = used; i < 8 * bits.size(); ++i)
    if (bit_at(bits, i)) refuse_bits(expected, "bit {} means nothing and is set", i);
}

/// Reads the places of `kept` numbers, and how many bytes they took.
std::vector<std::uint32_t> places_after_gaps(std::span<const std::byte> bytes, std::uint32_t kept,
                                             std::uint32_t count, const Expected& expected,
                                             std::size_t& used) {
  constexpr int kMostBytes = 5;
  std::vector<std::uint32_t> places;
  places.reserve(std::min<std::size_t>(kept, bytes.size()));
  std::uint64_t place = 0;
  for (std::uint32_t i = 0; i < kept; ++i) {
    std::uint64_t gap = 0;
    for (int byte = 0;; ++byte) {
      if (used == bytes.size() || byte == kMostBytes)
        refuse_bits(expected, "the place of number {} does not end", i);
      const auto bits = std::to_integer<std::uint64_t>(bytes[used++]);
      gap |= (bits & 0x7fU) << (7 * byte);
      if (bits < 0x80U) break;
    }
    place += gap;
    if (place >= count) refuse_bits(expected, "place {} is out of range ({})", place, count);
    places.push_back(static_cast<std::uint32_t>(place++));
  }
  return places;
}

}  // namespace

std::vector<std::byte> encode_one_bit(const OneBitVector& vector) {
  std::vector<std::byte> payload = begun_with('B');
  put_word(payload, static_cast<std::uint32_t>(vector.count));
  put_word(payload, vector.scale);
  for (std::size_t i = 0; i < vector.count; i += 8)
    payload.push_back(static_cast<std::byte>(vector.signs[i / 64] >> (i % 64) & 0xffU));
  return payload;
}

OneBitVector decode_one_bit(std::span<const std::byte> payload, const Expected& expected) {
  OneBitVector vector;
  vector.count = count_in(payload, expected, 'B', kOneBitHeader);
  vector.scale = magnitude_at(payload, 8, expected);
  const auto bits = payload.subspan(kOneBitHeader);
  if (bits.size() != (vector.count + 7) / 8)
    refuse_bits(expected, "a payload of {} bytes is not one of {} numbers", payload.size(),
                vector.count);
  check_left_over(bits, vector.count, expected);
  vector.signs.resize((vector.count + 63) / 64);
  for (std::size_t byte = 0; byte < bits.size(); ++byte)
    vector.signs[byte / 8] |= std::to_integer<std::uint64_t>(bits[byte]) << (byte % 8 * 8);
  return vector;
}

std::vector<std::byte> encode_two_bits(const SparseSet& set) {
  float low = 0, high = 0;
  for (std::size_t i = 0; i < set.values.size(); ++i) {
    const float magnitude = std::fabs(set.values[i]);
    low = i == 0 ? magnitude : std::min(low, magnitude);
    high = std::max(high, magnitude);
  }
  std::vector<std::byte> payload = begun_with('Q');
  put_word(payload, static_cast<std::uint32_t>(set.count));
  put_word(payload, static_cast<std::uint32_t>(set.blocks.size()));
  put_word(payload, low);
  put_word(payload, high);
  std::uint32_t next = 0;
  for (const std::uint32_t place : set.blocks) {
    std::uint32_t gap = place - next;
    for (; gap >= 0x80U; gap >>= 7U) payload.push_back(static_cast<std::byte>(gap | 0x80U));
    payload.push_back(static_cast<std::byte>(gap));
    next = place + 1;
  }
  const std::size_t codes = payload.size();
  payload.resize(codes + (set.values.size() + 3) / 4);
  for (std::size_t i = 0; i < set.values.size(); ++i) {
    const float magnitude = std::fabs(set.values[i]);
    LONGHAUL_ASSERT(magnitude == low || magnitude == high, "a third magnitude: {}", magnitude);
    const unsigned code = (std::signbit(set.values[i]) ? 1U : 0U) | (magnitude == high ? 2U : 0U);
    payload[codes + i / 4] |= static_cast<std::byte>(code << (i % 4 * 2));
  }
  return payload;
}

SparseSet decode_two_bits(std::span<const std::byte> payload, const Expected& expected) {
  const std::uint32_t count = count_in(payload, expected, 'Q', kTwoBitHeader);
  const auto kept = word_at<std::uint32_t>(payload, 8);
  if (kept > count) refuse_bits(expected, "{} of {} numbers are kept", kept, count);
  const float low = magnitude_at(payload, 12, expected);
  const float high = magnitude_at(payload, 16, expected);
  const auto rest = payload.subspan(kTwoBitHeader);
  std::size_t used = 0;
  SparseSet set{count, 1, places_after_gaps(rest, kept, count, expected, used), {}};
  const auto codes = rest.subspan(used);
  if (codes.size() != (std::size_t{kept} + 3) / 4)
    refuse_bits(expected, "a payload of {} bytes is not one of {} numbers", payload.size(), kept);
  check_left_over(codes, 2 * std::size_t{kept}, expected);
  set.values.reserve(kept);
  for (std::size_t i = 0; i < kept; ++i) {
    const float magnitude = bit_at(codes, 2 * i + 1) ? high : low;
    set.values.push_back(bit_at(codes, 2 * i) ? -magnitude : magnitude);
  }
  return set;
}

std::vector<std::byte> encode_four_bits(std::span<const float> numbers) {
  std::vector<std::byte> payload = begun_with('F');
  put_word(payload, static_cast<std::uint32_t>(numbers.size()));
  std::vector<float> steps;
  for (std::size_t begin = 0; begin < numbers.size(); begin += kInt4Group) {
    steps.push_back(
        int4_step(numbers.subspan(begin, std::min(kInt4Group, numbers.size() - begin))));
    put_word(payload, steps.back());
  }
  const std::size_t codes = payload.size();
  payload.resize(codes + (numbers.size() + 1) / 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto code = static_cast<unsigned>(int4_steps(numbers[i], steps[i / kInt4Group]) + 8);
    payload[codes + i / 2] |= static_cast<std::byte>(code << (i % 2 * 4));
  }
  return payload;
}

std::vector<float> decode_four_bits(std::span<const std::byte> payload, const Expected& expected) {
  constexpr float kMostSteps = 7;
  const std::size_t count = count_in(payload, expected, 'F', kFourBitHeader);
  if (payload.size() != four_bit_bytes(count))
    refuse_bits(expected, "a payload of {} bytes is not one of {} numbers", payload.size(), count);
  const auto codes = payload.last((count + 1) / 2);
  check_left_over(codes, 4 * count, expected);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float step = magnitude_at(payload, kFourBitHeader + 4 * (i / kInt4Group), expected);
    const unsigned code = std::to_integer<unsigned>(codes[i / 2]) >> (i % 2 * 4) & 15U;
    if (code == 0 || !std::isfinite(kMostSteps * step))
      refuse_bits(expected, "number {} is {} of the steps {}", i, static_cast<int>(code) - 8, step);
    numbers[i] = static_cast<float>(static_cast<int>(code) - 8) * step;
  }
  return numbers;
}

double expected_gap_bytes(double keep) {
  double bytes = 1;
  for (const double longest : {128.0, 16'384.0, 2'097'152.0, 268'435'456.0})
    bytes += std::pow(1 - keep, longest);
  return bytes;
}

}  // namespace longhaul::compress

#include "training/parts/set_envelope.hpp"

#include <algorithm>
#include <cstring>

namespace longhaul::training {

std::uint64_t sum_of_bytes(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15U;
  std::uint64_t sum = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    sum = (sum ^ word) * kOdd;
    sum ^= sum >> 32U;
  }
  return sum;
}

std::vector<std::byte> sealed(const SetEnvelope& envelope, std::span<const std::byte> set) {
  std::vector<std::byte> bytes(sizeof envelope + set.size());
  std::memcpy(bytes.data(), &envelope, sizeof envelope);
  if (!set.empty()) std::memcpy(bytes.data() + sizeof envelope, set.data(), set.size());
  return bytes;
}

std::vector<std::byte> sealed(int part, int iteration, std::span<const std::byte> set) {
  return sealed({part, iteration, sum_of_bytes(set)}, set);
}

std::optional<SetEnvelope> envelope_of(std::span<const std::byte> sealed) {
  if (sealed.size() < sizeof(SetEnvelope)) return std::nullopt;
  SetEnvelope envelope;
  std::memcpy(&envelope, sealed.data(), sizeof envelope);
  return envelope;
}

}  // namespace longhaul::training

#include "harness/collectives/step_numbers.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/unit_text.hpp"

namespace longhaul::harness {
namespace {

constexpr std::uint32_t kFactor = 7;
constexpr std::uint32_t kLargestNumber = 127;
constexpr std::size_t kBlock = 4096;

}  // namespace

std::uint32_t StepNumbers::first_of(int member, std::uint32_t item) const {
  return static_cast<std::uint32_t>(member) * 31 + item * 13 +
         static_cast<std::uint32_t>(iteration_) * 5;
}

void StepNumbers::fill(std::span<float> numbers, int member, std::uint32_t item) const {
  std::uint32_t value = first_of(member, item);
  for (float& number : numbers) {
    number = static_cast<float>(static_cast<std::int32_t>(value & kLargestNumber));
    value += kFactor;
  }
}

bool StepNumbers::are_right(std::span<const float> numbers, std::uint32_t item) const {
  static_assert(kBlock % (kLargestNumber + 1) == 0,
                "what a member brings repeats itself in a block");
  std::vector<float> expected(std::min(numbers.size(), kBlock));
  for (int member = 0; member < steps_.members; ++member) {
    if (!plan::brings(steps_, member, item)) continue;
    std::uint32_t value = first_of(member, item);
    for (float& sum : expected) {
      sum += static_cast<float>(static_cast<std::int32_t>(value & kLargestNumber));
      value += kFactor;
    }
  }
  for (std::size_t begin = 0; begin < numbers.size(); begin += kBlock) {
    const auto block = numbers.subspan(begin, std::min(kBlock, numbers.size() - begin));
    if (std::memcmp(block.data(), expected.data(), block.size_bytes()) != 0) return false;
  }
  return true;
}

Bytes size_in_numbers(const plan::Collective& collective) {
  const Bytes unit =
      Bytes{4} * static_cast<std::int64_t>(collective.members.size()) * collective.pieces;
  const Bytes size{collective.size.count() / unit.count() * unit.count()};
  if (size < unit)
    fail(
        "--bytes {}: too few for a number in each piece of each shard ({} members, {} pieces of 4 "
        "bytes). Give {} or more.",
        to_text(collective.size), collective.members.size(), collective.pieces, to_text(unit));
  return size;
}

}  // namespace longhaul::harness

#pragma once

#include <cstdint>
#include <span>

#include "plan/steps/collective_steps.hpp"

namespace longhaul::harness {

/// Where a member's numbers come from and go to: another memory, or the same (nccl-tests'
/// out-of-place and in-place).
enum class BufferUse : std::uint8_t { out_of_place, in_place };

/// The f32 numbers that members bring to a collective: whole ones from 0 to 127, so that every sum
/// is exact, and others in each iteration, so that those of an earlier one are wrong.
class StepNumbers {
public:
  StepNumbers(const plan::CollectiveSteps& steps, int iteration)
      : steps_{steps}, iteration_{iteration} {}

  /// The numbers of an item that the member brings.
  void fill(std::span<float> numbers, int member, std::uint32_t item) const;
  /// Are these the numbers of the item when the collective is over?
  [[nodiscard]] bool are_right(std::span<const float> numbers, std::uint32_t item) const;

private:
  [[nodiscard]] std::uint32_t first_of(int member, std::uint32_t item) const;

  const plan::CollectiveSteps& steps_;
  int iteration_;
};

/// The largest size, at most the collective's, that all shards and pieces divide into whole f32
/// numbers. Throws Error where there is none.
[[nodiscard]] Bytes size_in_numbers(const plan::Collective& collective);

}  // namespace longhaul::harness

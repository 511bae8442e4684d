#pragma once

#include <cstdint>
#include <vector>

#include "prefill/lowering/filled_plan.hpp"
#include "prefill/play/block_memory.hpp"

namespace longhaul::prefill {

/// The memory of a GPU in a stretch with prefill.
struct GpuMemory {
  std::int32_t rank = 0;
  Bytes capacity;
  Bytes peak;  ///< training, weights and prompts together
  [[nodiscard]] bool fits() const { return peak <= capacity; }
  friend bool operator==(const GpuMemory&, const GpuMemory&) = default;
};

/// What GPUs held at most, of those whose capacity is known, as the rows of a stretch say. A prompt
/// holds memory of a GPU from the begin of its first op there until its keys and values have left
/// it, or, where none are sent, until the end of its last stage on any GPU. What was declined or
/// killed holds until the end of the last op of it that ran.
[[nodiscard]] std::vector<GpuMemory> memory_of_rows(
    const MemoryBesideBlocks& memory, const TrainingGraph& graph, const std::vector<Served>& served,
    const FilledPlan& filled, const std::vector<Decision>& decisions, const OpResults& results);

}  // namespace longhaul::prefill

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "prefill/placement.hpp"
#include "prefill/play/expected_training.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::prefill {

/// What training and the weights of served models leave of a GPU's memory as its blocks go on.
struct BlockMemory {
  Bytes capacity;
  Bytes first;                ///< until the first block begins
  std::vector<Bytes> during;  ///< by block, in the order of TrainingGraph::blocks()
  std::vector<Bytes> after;   ///< from the block's end until the next one begins
};

/// What a prompt holds, and when it is expected to release it.
struct HeldBytes {
  Bytes bytes;
  Duration until{};
};

/// Of the GPUs whose capacity is known, what is left for prompts: between times of blocks that are
/// planned, expected or measured.
class MemoryBesideBlocks {
public:
  /// `plan` is what `graph` is of. Throws nothing.
  MemoryBesideBlocks(const Schedule& schedule, const Scenario& scenario, const Plan& plan,
                     const TrainingGraph& graph, const std::vector<Served>& served);

  [[nodiscard]] std::int32_t gpus() const { return static_cast<std::int32_t>(gpus_.size()); }
  /// nullptr: not known, all fits.
  [[nodiscard]] const BlockMemory* of(std::int32_t rank) const {
    const auto& own = gpus_[static_cast<std::size_t>(rank)];
    return own ? &*own : nullptr;
  }
  /// Does what asks for memory from `start` on, whenever that is, fit beside training, as it is
  /// expected, and `others` that hold some? What should have released its own by now may hold it
  /// on. Precondition: it is known.
  [[nodiscard]] bool fits(std::int32_t rank, ExpectedTraining& expected, Duration now,
                          Duration start, const HeldBytes& asks,
                          std::span<const HeldBytes> others) const;
  /// The most that it ever leaves. Precondition: likewise.
  [[nodiscard]] Bytes most(std::int32_t rank) const;
  /// What it leaves from now on, as it is expected; empty: not known.
  [[nodiscard]] std::vector<FreeMemoryStep> steps(std::int32_t rank, ExpectedTraining& expected,
                                                  Duration now) const;

private:
  std::vector<std::optional<BlockMemory>> gpus_;
};

}  // namespace longhaul::prefill

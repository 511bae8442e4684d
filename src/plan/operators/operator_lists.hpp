#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "base/units.hpp"

namespace longhaul::plan {

/// Index into the lists of OperatorLists; the first is empty: nothing below a block.
enum class OperatorListId : std::uint32_t {};

/// What the lists have: operators, or the tasks (kernels) of each.
enum class Below : std::uint8_t { operators, tasks };

/// One operator of a list.
struct OperatorStep {
  std::uint32_t name = 0;   ///< index into OperatorLists::names
  std::int32_t layer = -1;  ///< from the first layer of the block's chunk on; -1: none
  std::uint8_t slice = 0;   ///< of a block in parts, each part does a slice of every operator
  std::uint8_t slices = 1;
  Duration end{};  ///< since the block's start
  friend auto operator<=>(const OperatorStep&, const OperatorStep&) = default;
};

/// The operators below the blocks of a plan, each list once: all blocks of a chunk and kind refer
/// to it, and those of other chunks and ranks whose operators are the same. Immutable once a plan
/// has it (Plan::operators), so that plans share it.
struct OperatorLists {
  std::vector<std::string> names;
  std::vector<OperatorStep> steps;                   ///< of all lists, one after the other
  std::vector<std::uint32_t> begin{0, 0};            ///< index: OperatorListId; one more at the end
  IndexedVector<ChunkId, std::int32_t> first_layer;  ///< of each chunk; -1: it has none

  [[nodiscard]] std::span<const OperatorStep> list(OperatorListId id) const {
    return {steps.data() + begin[index(id)], begin[index(id) + 1] - begin[index(id)]};
  }
  /// The list that a step belongs to.
  [[nodiscard]] OperatorListId list_with(std::uint32_t step) const;
  /// Of the model; -1: none.
  [[nodiscard]] std::int32_t layer_of(const OperatorStep& step, ChunkId chunk) const {
    return step.layer < 0 ? -1 : first_layer[chunk] + step.layer;
  }
};

}  // namespace longhaul::plan

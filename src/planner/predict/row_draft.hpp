#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/plan_draft.hpp"
#include "planner/predict/row_slots.hpp"

namespace longhaul::planner {

/// A plan made by hand whose ops are of slots.
struct RowDraft {
  using Handle = plan::PlanDraft::Handle;

  std::vector<Slot> slots;
  plan::PlanDraft draft{"row"};
  std::vector<std::pair<Handle, std::uint32_t>> ops;  ///< the slot of each

  std::uint32_t add_slot(const Slot& slot) {
    slots.push_back(slot);
    return static_cast<std::uint32_t>(slots.size() - 1);
  }
  Handle add_block(LaneId lane, std::uint32_t slot, const Block& block) {
    return noted(draft.add_block(lane, Duration{0}, block), slot);
  }
  Handle add_collective(LaneId lane, std::uint32_t slot, CollectiveKind kind) {
    return noted(draft.add_collective(kind, {lane}, Duration{0}).front(), slot);
  }
  Handle noted(Handle handle, std::uint32_t slot) {
    ops.emplace_back(handle, slot);
    return handle;
  }
};

/// Stages of a pipeline (of one stage, too), each a rank.
[[nodiscard]] RowDraft draft_pipeline(const profile::TrainingRow& row);
/// One rank of many that hold the weights together: zero2 and zero3 without a pipeline.
[[nodiscard]] RowDraft draft_sharded(const profile::TrainingRow& row);

}  // namespace longhaul::planner

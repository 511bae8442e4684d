#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "plan/plan.hpp"
#include "prefill/placement.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::prefill {

/// One stage of a placed prompt on its GPU, at the times of the placement.
struct PlacedStage {
  std::size_t decision = 0;  ///< index of the Decision that it is of
  int stage = 0;
  Rank rank{};
  Duration start{}, duration{};
  [[nodiscard]] Duration end() const { return start + duration; }
};

/// The stages of all placed prompts, by decision and then by stage. Pipelines are looked up by
/// number. Throws Error where a decision names one that does not serve.
[[nodiscard]] std::vector<PlacedStage> placed_stages(const std::vector<Served>& served,
                                                     const std::vector<Decision>& decisions);

/// Does a prefill give way to training? `careless`, a control that must be seen to harm, starts
/// whenever its device is free once its request has arrived, before its time or after it.
enum class Manners : std::uint8_t { gives_way, careless };

/// A stage of a prefill, and the op that it is; or, in parts one after the other, the last of them.
struct FilledStage {
  PlacedStage placed;
  OpId op{};
  OpId first{};  ///< part
};

/// A plan of training with placed prefills in its bubbles.
struct FilledPlan {
  Plan plan;
  std::vector<FilledStage> stages;  ///< by decision and then by stage
  std::vector<OpId> training;       ///< by op of the plan without prefills: its id here
};

/// Adds the stages of placed prompts to a plan of training whose predicted times are `times`. Each
/// is an optional op of its own lane, "prefill", on the device of its rank:
///  - it starts at its placed time at the earliest, after the block whose end opens its bubble;
///  - its deadline is the predicted start of the block that closes the bubble, or `end` after the
///    last: what would end later is skipped, and so are its prompt's later stages. The placement
///    has no stage after `end` (FillRange::apart);
///  - between stages a message carries the activation (tokens x hidden x 2 bytes, where dimensions
///    are known), which takes ServedModel::hop and holds no link.
/// Training's ops keep their order, and none of them depends on one that was added: where all take
/// their planned times the simulator gives training its own times, and stages those of the
/// placement. Ranks after those that train are left as they are.
[[nodiscard]] FilledPlan fill_plan(const Plan& training, const OpTimes& times, Duration end,
                                   const std::vector<Served>& served,
                                   const std::vector<Decision>& decisions,
                                   Manners manners = Manners::gives_way);

}  // namespace longhaul::prefill

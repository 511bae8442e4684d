#pragma once

#include <vector>

#include "prefill/accounts/idle_causes.hpp"
#include "prefill/lowering/filled_plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::prefill {

/// A stretch as it was played. All live as long.
struct PlayedRows {
  const Plan& training;  ///< without prefills
  const FilledPlan& filled;
  const std::vector<Served>& served;
  const std::vector<Decision>& decisions;  ///< of what was placed in it, from its begin
  const OpResults& results;                ///< of `filled`
  int gpus = 0;                            ///< that train
};

/// Who else asks for the GPUs of a stretch.
struct StretchDemand {
  bool backlog = false;  ///< some request always waits
  bool is_live = false;  ///< what a GPU declines may begin in a later bubble
  /// Of an open loop: that wait, and are placed after this stretch; arrivals from its begin.
  std::vector<Decision> waiting{};
};

/// What of the GPUs' time neither training nor prefills took, by cause, as the rows of a stretch
/// say, which lasts until the last op of training ends. Bubbles are those that were played, and in
/// them, beside what idle_by_cause() tells,
///  - `signal`: from when a stage could have begun (its planned start, when the block that opens
///    its bubble and the stage before it were over) until it did, and between its parts;
///  - `declined`: the planned time of a stage that did not run or, live, ran in a later bubble of
///    the stretch. A live prompt that began in none of them is not among `decisions`: what it left
///    idle counts by length and requests.
[[nodiscard]] IdleTimes idle_of_rows(const PlayedRows& rows, const StretchDemand& demand);

}  // namespace longhaul::prefill

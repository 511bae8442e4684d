#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::prefill {

/// The GPUs that hold a served model's layers together, one stage each.
struct Pipeline {
  std::int32_t number = 0;          ///< (g C + l) P + s, see serving_pipelines()
  std::vector<std::int32_t> ranks;  ///< of stage 0 to k - 1
};

/// From the start of a pass of that time to the start of its stage.
[[nodiscard]] Duration stage_offset(const ServedModel& model, Duration whole, int stage);

/// Prompts of one length that the bubbles of an iteration hold, all pipelines together.
struct SkewGain {
  std::int64_t prompts = 0;   ///< of the pipelines that serve
  std::int64_t of_equal = 0;  ///< of those of equal places
  std::int64_t upper_bound =
      0;  ///< of any: no stage of a pipeline computes more than its GPU holds
};

/// Which GPUs serve, and how many hold no stage and why.
struct ServingPipelines {
  std::vector<Pipeline> pipelines;  ///< numbers ascend
  int without_group = 0;            ///< GPUs of cells that do not fill a pipeline
  int across_datacenters = 0;       ///< GPUs of pipelines that would leave a datacenter
  int left_over = 0;                ///< of skewed pipelines: GPUs of datacenters that k do not fill
  std::optional<SkewGain> skew{};   ///< of skewed pipelines
};

/// Pipelines of k stages: the GPUs of device s of LocalDPRank l in DP-cells g k .. g k + k - 1,
/// `cell` = C replicas a cell, P devices; number (g C + l) P + s (BubbleTea 5.1). All stages lie in
/// one datacenter. Throws Error where there are fewer than k cells, and under tensor parallelism,
/// which the numbering does not know.
[[nodiscard]] ServingPipelines serving_pipelines(const Scenario& scenario, int stages, int cell);

/// Throws Error under tensor parallelism.
void require_no_tensor_parallelism(const Parallel& parallel);

}  // namespace longhaul::prefill

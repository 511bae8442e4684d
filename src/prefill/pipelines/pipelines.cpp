#include "prefill/pipelines/pipelines.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul::prefill {
namespace {

std::vector<std::int32_t> ranks_of_pipeline(const Scenario& scenario, int stages, int cell,
                                            int first_cell, int local, DeviceId device) {
  std::vector<std::int32_t> ranks;
  for (int stage = 0; stage < stages; ++stage) {
    const ReplicaId replica{(first_cell + stage) * cell + local};
    ranks.push_back(static_cast<std::int32_t>(scenario.rank(replica, device)));
  }
  return ranks;
}

bool in_one_datacenter(const Scenario& scenario, const std::vector<std::int32_t>& ranks) {
  if (!scenario.is_placed()) return true;
  return std::ranges::all_of(ranks, [&](std::int32_t rank) {
    return scenario.datacenter_of(Rank{rank}) == scenario.datacenter_of(Rank{ranks.front()});
  });
}

}  // namespace

Duration stage_offset(const ServedModel& model, Duration whole, int stage) {
  if (stage == 0) return Duration{};
  return model.stage_time(whole, 0) + (stage - 1) * model.stage_time(whole, 1) + stage * model.hop;
}

void require_no_tensor_parallelism(const Parallel& parallel) {
  if (parallel.tensor > 1)
    fail("prefill under tensor parallelism is not known (parallel.tensor = {}). Use 1.",
         parallel.tensor);
}

ServingPipelines serving_pipelines(const Scenario& scenario, int stages, int cell) {
  const Parallel& parallel = scenario.parallel;
  require_no_tensor_parallelism(parallel);
  const int cells = parallel.replicas / cell;
  if (stages > cells)
    fail("prefill.stages = {} is more than the {} DP-cells (each holds a stage). Use {} or less.",
         stages, cells, std::max(1, cells));
  ServingPipelines serving;
  const int groups = cells / stages;
  serving.without_group = (parallel.replicas - groups * stages * cell) * parallel.stages;
  for (int group = 0; group < groups; ++group)
    for (int local = 0; local < cell; ++local)
      for (const DeviceId device : scenario.device_ids()) {
        Pipeline pipeline{(group * cell + local) * parallel.stages + number(device),
                          ranks_of_pipeline(scenario, stages, cell, group * stages, local, device)};
        if (in_one_datacenter(scenario, pipeline.ranks))
          serving.pipelines.push_back(std::move(pipeline));
        else
          serving.across_datacenters += stages;
      }
  return serving;
}

}  // namespace longhaul::prefill

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "prefill/placement.hpp"
#include "prefill/prompt/kv_link.hpp"
#include "prefill/prompt/memory_over_time.hpp"
#include "schedule/schedule.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::prefill {

/// A GPU's memory: nullopt and 0 where the capacity is not known.
struct GpuCapacity {
  std::optional<Bytes> capacity{};
  Bytes free;  ///< less static memory of training and weights of served models
};
/// By training GPU.
[[nodiscard]] std::vector<GpuCapacity> capacities_of_gpus(const Schedule& schedule,
                                                          const Scenario& scenario,
                                                          const std::vector<Served>& served);

/// What training and the weights of served models leave of each GPU's memory over an iteration:
/// capacity less static memory, less activations, which blocks take and release as they start and
/// end. No steps where the capacity is not known.
[[nodiscard]] std::vector<std::vector<FreeMemoryStep>> free_memory_steps(
    const Schedule& schedule, const Scenario& scenario, const Plan& plan, const OpTimes& times,
    const std::vector<Served>& served);

/// The sends of each training GPU to other nodes of its datacenter, which hold its interface there.
[[nodiscard]] std::vector<std::vector<InterfaceHold>> interface_holds(const Plan& plan,
                                                                      const OpTimes& times,
                                                                      int gpus);

/// What swapping weights would leave of the bubbles: GPUs hold training's and the served model's by
/// turns, so that each bubble begins with a load of the model's share and ends with one of
/// training's weights, over one link of the host.
struct WeightSwap {
  std::string model;
  Duration load{}, restore{};  ///< the longest of a GPU
  Duration idle{}, left{};     ///< of all bubbles of GPUs that hold the model; what loads leave
  std::int64_t bubbles = 0,
               usable = 0;  ///< all of them; those of which more than the guard is left
};
/// By served model. Throws Error where one has no dimensions, from which its weights follow.
[[nodiscard]] std::vector<WeightSwap> swapped_weights(const IterationBubbles& iteration,
                                                      const Scenario& scenario,
                                                      const std::vector<Served>& served,
                                                      Bandwidth rate);

}  // namespace longhaul::prefill

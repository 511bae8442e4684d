#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "prefill/placement.hpp"
#include "prefill/prompt/kv_link.hpp"
#include "prefill/prompt/memory_over_time.hpp"
#include "schedule/schedule.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::prefill {

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

}  // namespace longhaul::prefill

#include "plan/lowering/lower.hpp"

#include "plan/lowering/lowering.hpp"
#include "schedule/cells.hpp"

namespace longhaul::plan {
namespace {

std::optional<Refusal> why_other_shape(const Schedule& schedule, const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  if (schedule.devices == parallel.stages && schedule.replicas == parallel.replicas &&
      schedule.microbatches == parallel.microbatches)
    return std::nullopt;
  return refused(
      "schedule {} has {} devices, {} replicas, {} microbatches, the scenario {}, {}, {}. "
      "Generate it for this scenario, or set [parallel] to match.",
      schedule.name, schedule.devices, schedule.replicas, schedule.microbatches, parallel.stages,
      parallel.replicas, parallel.microbatches);
}

}  // namespace

Plan lower(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
           const TimeAlone& time_alone) {
  return try_lower(schedule, scenario, arrangement, time_alone).or_throw();
}

Result<Plan> try_lower(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                       const TimeAlone& time_alone) {
  if (auto why = why_other_shape(schedule, scenario)) return *std::move(why);
  if (schedule.cell == 1)
    return Lowering{schedule, scenario, arrangement, Crossing::alone, time_alone}.run();
  if (arrangement == Arrangement::grouped)
    return refused(
        "schedule {} shares the WAN in cells of {} pipelines, which grouped communication cannot "
        "(a rank relays what others send while it computes, not between two of its own blocks). "
        "Use --comm decoupled.",
        schedule.name, schedule.cell);
  if (auto why = schedule::why_no_cells(schedule, scenario)) return *std::move(why);
  return Lowering{schedule, scenario, arrangement, Crossing::relayed, time_alone}.run();
}

Plan lower_pooled(const Schedule& schedule, const Scenario& scenario, const TimeAlone& time_alone) {
  return try_lower_pooled(schedule, scenario, time_alone).or_throw();
}

Result<Plan> try_lower_pooled(const Schedule& schedule, const Scenario& scenario,
                              const TimeAlone& time_alone) {
  if (auto why = why_other_shape(schedule, scenario)) return *std::move(why);
  if (auto why = schedule::why_no_cells(schedule, scenario)) return *std::move(why);
  const Crossing crossing = schedule.cell == 1 ? Crossing::alone : Crossing::pooled;
  return Lowering{schedule, scenario, Arrangement::decoupled, crossing, time_alone}.run();
}

}  // namespace longhaul::plan

#include "plan/lowering/lower.hpp"

#include "base/error.hpp"
#include "plan/lowering/lowering.hpp"
#include "schedule/cells.hpp"

namespace longhaul {
namespace {

void check_shape(const Schedule& schedule, const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  if (schedule.devices != parallel.stages || schedule.replicas != parallel.replicas ||
      schedule.microbatches != parallel.microbatches) {
    fail(
        "schedule {} has {} devices, {} replicas, {} microbatches, the scenario {}, {}, {}. "
        "Generate it for this scenario, or set [parallel] to match.",
        schedule.name, schedule.devices, schedule.replicas, schedule.microbatches, parallel.stages,
        parallel.replicas, parallel.microbatches);
  }
}

}  // namespace

Plan lower(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement) {
  check_shape(schedule, scenario);
  if (schedule.cell == 1) return Lowering{schedule, scenario, arrangement, Crossing::alone}.run();
  if (arrangement == Arrangement::grouped)
    fail(
        "schedule {} shares the WAN in cells of {} pipelines, which grouped communication cannot "
        "(a rank relays what others send while it computes, not between two of its own blocks). "
        "Use --comm decoupled.",
        schedule.name, schedule.cell);
  check_cells(schedule, scenario);
  return Lowering{schedule, scenario, arrangement, Crossing::relayed}.run();
}

Plan lower_pooled(const Schedule& schedule, const Scenario& scenario) {
  check_shape(schedule, scenario);
  check_cells(schedule, scenario);
  const Crossing crossing = schedule.cell == 1 ? Crossing::alone : Crossing::pooled;
  return Lowering{schedule, scenario, Arrangement::decoupled, crossing}.run();
}

}  // namespace longhaul

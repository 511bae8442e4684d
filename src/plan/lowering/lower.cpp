#include "plan/lowering/lower.hpp"

#include "plan/lowering/lowering.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "schedule/cells.hpp"

namespace longhaul::plan {
namespace {

std::optional<Refusal> why_other_shape(const Schedule& schedule, const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  if (schedule.devices == parallel.stages && schedule.replicas == parallel.replicas &&
      schedule.microbatches == parallel.microbatches &&
      schedule.replica_microbatches == parallel.replica_microbatches)
    return std::nullopt;
  return refused(
      "schedule {} has {} devices, {} replicas, {} microbatches, the scenario {}, {}, {}. "
      "Generate it for this scenario, or set [parallel] to match.",
      schedule.name, schedule.devices, schedule.replicas, schedule.microbatches, parallel.stages,
      parallel.replicas, parallel.microbatches);
}

/// Of another shape, or with gradients that cannot be exchanged as the scenario says.
std::optional<Refusal> why_not_lowered(const Schedule& schedule, const Scenario& scenario) {
  if (auto why = why_other_shape(schedule, scenario)) return why;
  return why_no_parts(schedule, scenario);
}

/// Steps of the optimizer that take time are part of an iteration.
Result<Plan> with_given_steps(Result<Plan> plan, const Schedule& schedule,
                              const Scenario& scenario) {
  const bool own = scenario.parallel.gradient_sync == GradientSync::compressed;
  if (!plan || own || scenario.costs.optimizer.empty()) return plan;
  return with_optimizer_steps(*plan, schedule, scenario);
}

}  // namespace

Plan lower(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
           const TimeAlone& time_alone) {
  return try_lower(schedule, scenario, arrangement, time_alone).or_throw();
}

Result<Plan> try_lower(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                       const TimeAlone& time_alone) {
  if (auto why = why_not_lowered(schedule, scenario)) return *std::move(why);
  if (schedule.cell == 1)
    return with_given_steps(
        Lowering{schedule, scenario, arrangement, Crossing::alone, time_alone}.run(), schedule,
        scenario);
  if (arrangement == Arrangement::grouped)
    return refused(
        "schedule {} shares the WAN in cells of {} pipelines, which grouped communication cannot "
        "(a rank relays what others send while it computes, not between two of its own blocks). "
        "Use --comm decoupled.",
        schedule.name, schedule.cell);
  if (auto why = schedule::why_no_cells(schedule, scenario)) return *std::move(why);
  return with_given_steps(
      Lowering{schedule, scenario, arrangement, Crossing::relayed, time_alone}.run(), schedule,
      scenario);
}

Plan lower_exchanges(const Schedule& schedule, const Scenario& scenario,
                     const PartExchanges& exchanges) {
  require_none(why_not_lowered(schedule, scenario));
  require_none(why_no_exchanges(schedule, exchanges));
  return Lowering{schedule, scenario, Arrangement::decoupled, Crossing::alone, {}, exchanges}
      .run()
      .or_throw();
}

Plan lower_at(Granularity granularity, const Schedule& schedule, const Scenario& scenario,
              Arrangement arrangement) {
  Plan plan = lower(schedule, scenario, arrangement);
  if (granularity == Granularity::blocks) return plan;
  plan = expand(with_operators(std::move(plan), schedule, scenario, granularity).or_throw());
  plan.granularity = granularity;
  return plan;
}

Plan lower_pooled(const Schedule& schedule, const Scenario& scenario, const TimeAlone& time_alone) {
  return try_lower_pooled(schedule, scenario, time_alone).or_throw();
}

Result<Plan> try_lower_pooled(const Schedule& schedule, const Scenario& scenario,
                              const TimeAlone& time_alone) {
  if (auto why = why_not_lowered(schedule, scenario)) return *std::move(why);
  if (auto why = schedule::why_no_cells(schedule, scenario)) return *std::move(why);
  const Crossing crossing = schedule.cell == 1 ? Crossing::alone : Crossing::pooled;
  return with_given_steps(
      Lowering{schedule, scenario, Arrangement::decoupled, crossing, time_alone}.run(), schedule,
      scenario);
}

}  // namespace longhaul::plan

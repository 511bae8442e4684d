#include "planner/collectives/grain.hpp"

#include <optional>

#include "base/index.hpp"
#include "plan/lowering/collectives.hpp"
#include "plan/lowering/count_ops.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/collectives/collective_times.hpp"
#include "planner/collectives/time_alone.hpp"

namespace longhaul::planner {
namespace {

/// A bound on count_ops() that looks at no row: each block is an op, and sends one message at most.
std::size_t most_ops_of(const Schedule& schedule, const Scenario& scenario) {
  const auto cell = to_size(schedule.cell);
  std::size_t blocks = 0;
  for (const ReplicaId replica : schedule.replica_ids())
    for (const DeviceId device : schedule.device_ids())
      blocks += schedule.row(replica, device).size();
  std::size_t ops = blocks * (1 + 2 * (1 + 3 * (cell - 1)));
  for (const plan::StageCollective& each : plan::find_collectives(schedule, scenario))
    ops += 2 * plan::count_messages_of_ring(each.collective);
  return ops;
}

std::optional<Refusal> why_not_played_alone(const Schedule& schedule, const Scenario& scenario) {
  for (const plan::StageCollective& each : plan::find_collectives(schedule, scenario)) {
    const std::size_t messages = plan::count_messages_of_ring(each.collective);
    if (messages > kMostMessages)
      return refused(
          "{} of {} ranks has {} messages (more than {} are not played). Use fewer replicas, or "
          "parallel.gradient_sync = \"ring-rate\".",
          to_text(each.collective.kind), each.collective.members.size(), messages, kMostMessages);
  }
  return std::nullopt;
}

}  // namespace

Grain grain_of(const Schedule& schedule, const Scenario& scenario, std::size_t most_ops) {
  if (plan::is_estimate(scenario.parallel.gradient_sync))
    return plan::find_collectives(schedule, scenario).empty() ? Grain::steps : Grain::estimate;
  if (most_ops_of(schedule, scenario) <= most_ops) return Grain::steps;
  if (plan::find_collectives(schedule, scenario).empty()) return Grain::steps;
  return plan::count_ops(schedule, scenario) > most_ops ? Grain::whole : Grain::steps;
}

Result<ReportedPlan> try_lower_reported(const Schedule& schedule, const Scenario& scenario,
                                        Arrangement arrangement, std::size_t most_ops) {
  const Grain grain = grain_of(schedule, scenario, most_ops);
  plan::TimeAlone alone;
  if (grain == Grain::whole) {
    if (auto why = why_not_played_alone(schedule, scenario)) return *std::move(why);
    alone = time_alone(scenario);
  }
  Result<Plan> plan = plan::try_lower(schedule, scenario, arrangement, alone);
  if (!plan) return plan.refusal();
  return ReportedPlan{*std::move(plan), grain};
}

ReportedPlan lower_reported(const Schedule& schedule, const Scenario& scenario,
                            Arrangement arrangement, std::size_t most_ops) {
  return try_lower_reported(schedule, scenario, arrangement, most_ops).or_throw();
}

}  // namespace longhaul::planner
